"""Documents that must no longer be served: which they are, and what contains them."""
