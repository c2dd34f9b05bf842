"""Attacks on the guarantees: audits, replays, planted bugs, searches for the worst data."""
