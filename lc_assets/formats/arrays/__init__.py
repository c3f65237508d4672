"""Token arrays: Zarr shards, grids, the flat layout, global orders, NumPy files."""
