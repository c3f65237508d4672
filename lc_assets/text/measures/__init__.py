"""Measures that RedPajama-V2 has no signal for."""
