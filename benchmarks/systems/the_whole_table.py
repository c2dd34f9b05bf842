"""The whole table of few variables is released once, and graphs are weighed by it: chapter 15.

The edges are those of largest expected F1.
"""

from functools import partial

from benchmarks.graph_cases import System
from dpcgd.tables.private_graph import dag_posterior

SYSTEMS = [System("dag_posterior", "whole table", "proved", partial(dag_posterior, precision="f1"))]
