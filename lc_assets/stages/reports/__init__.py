"""Stages of reports of lengths and referrals, and the data-set card."""
