"""Commands that show, verify, trace and explain what was published."""
