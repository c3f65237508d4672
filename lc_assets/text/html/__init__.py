"""The text of a page, and a guard that bounds the cost of HTML parsing."""
