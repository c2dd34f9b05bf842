"""Graphs: CPDAGs, knowledge, the PC search, and what a run releases."""
