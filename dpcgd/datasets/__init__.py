"""Data: coded records with public levels, real ones with public ranges, networks."""
