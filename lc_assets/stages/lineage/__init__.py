"""From a row to its documents upstream, and from a document to its rows."""
