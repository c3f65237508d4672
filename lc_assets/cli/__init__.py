"""The command ``lc``. One module per command or group of commands; `main` registers them."""
