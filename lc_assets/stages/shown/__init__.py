"""What stages show of what they published: a module per kind of artefact, a function per stage."""
