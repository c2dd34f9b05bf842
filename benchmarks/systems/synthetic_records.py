"""Synthetic records, then PC: scored by benchmarks/yardsticks.py in an environment of its own."""

from benchmarks.graph_cases import System

SYSTEMS = [
    System("MST+PC", "synthetic records", "proved", yardstick="MST"),
    System("AIM+PC", "synthetic records", "proved", yardstick="AIM"),
]
