"""Without privacy, by a score: run by benchmarks/yardsticks.py in an environment of its own."""

from benchmarks.graph_cases import System

SYSTEMS = [System("GES", "without privacy", "none", yardstick="GES, BIC")]
