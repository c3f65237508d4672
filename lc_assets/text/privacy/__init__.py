"""Personal data in a text: finding and replacing it."""
