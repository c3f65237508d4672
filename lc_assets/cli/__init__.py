"""The command ``lc``. One module per command or group of commands; `app` registers them."""
