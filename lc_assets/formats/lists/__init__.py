"""Files that a user supplies: rules, word lists, blocklists, withdrawals, evaluations, models."""
