"""RedPajama-V2's quality signals of a text."""
