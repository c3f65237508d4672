"""The text of a page, and the guard in front of HTML parsers."""
