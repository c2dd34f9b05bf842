"""The whole table of few variables is released once, and graphs are weighed by it: chapter 17."""

from dpcgd.book.systems import System
from dpcgd.marginals.dag_posterior import dag_posterior

SYSTEMS = [System("dag_posterior", "whole table", "proved", dag_posterior)]
