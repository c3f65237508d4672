"""What stages show of what they published in the UI: a function per stage, of its name."""
