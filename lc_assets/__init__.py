"""Software-defined assets that turn web crawls into long-context pre-training data."""
