"""Test statistics with proved sensitivities."""
