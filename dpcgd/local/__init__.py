"""Local privacy: mechanisms that each person runs alone, and the analysis of their reports."""
