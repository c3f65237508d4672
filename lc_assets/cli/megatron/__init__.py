"""``lc megatron``: token files, indices, blends and caches for Megatron."""
