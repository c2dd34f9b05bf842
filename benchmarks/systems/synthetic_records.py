"""Synthetic records, then PC: scored by benchmarks/yardsticks.py in an environment of its own."""

from dpcgd_book.systems.graph_systems import System

SYSTEMS = [
    System("MST+PC", "synthetic records", "proved", yardstick="MST"),
    System("AIM+PC", "synthetic records", "proved", yardstick="AIM"),
]
