"""Cause or effect: systems for two variables."""
