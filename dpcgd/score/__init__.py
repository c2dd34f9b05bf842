"""Score-based systems: NOTEARS, NoLeaks, and searches by score."""
