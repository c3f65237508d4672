"""Asset checks: re-read what was published and hold it against the receipt and against theory."""
