"""Local privacy: mechanisms that everybody runs alone, and what can be learned from reports."""
