"""What the commands of ``lc`` do, as functions; `lc_assets` gives them by their names."""
