"""Where work runs: this machine's processes, or a cluster's. One method; a stage does not know what
is behind it.
"""
