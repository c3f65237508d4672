"""Commands that build, plan, release, compare, prune and withdraw from a lake."""
