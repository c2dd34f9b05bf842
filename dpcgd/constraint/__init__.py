"""Constraint-based systems: each is an oracle for the PC search."""
