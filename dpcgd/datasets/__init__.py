"""Data: records whose levels and ranges are public, networks."""
