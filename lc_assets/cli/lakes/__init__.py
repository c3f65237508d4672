"""Commands that build, plan, release, withdraw from and prune a lake."""
