"""What the UI shows of published versions: a function per stage, with the stage's name."""
