"""Commands that show, verify, trace and compare what was published."""
