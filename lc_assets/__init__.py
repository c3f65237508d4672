"""Software-defined assets that turn web crawls into long-context pre-training data."""

__version__ = "0.2.0.dev0"
