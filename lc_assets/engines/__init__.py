"""Where work runs: this machine's processes. One small interface; a stage does not know what is behind it."""
