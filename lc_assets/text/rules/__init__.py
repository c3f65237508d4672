"""Rules on the columns of a document, and computing these columns."""
