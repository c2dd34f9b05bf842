"""Differentially private causal graph discovery: a search, an oracle and a budget."""

from dpcgd.datasets import Dataset, read_csv
from dpcgd.exponential import em_pc
from dpcgd.graphs import CPDAG
from dpcgd.marginals import table_pc
from dpcgd.networks import NETWORKS, Network, from_bif, load
from dpcgd.privacy import Budget, BudgetSpent
from dpcgd.search import Knowledge, Release
from dpcgd.sieve import laplace_pc, pc, priv_pc, svt_pc

__all__ = [
    "CPDAG",
    "NETWORKS",
    "Budget",
    "BudgetSpent",
    "Dataset",
    "Knowledge",
    "Network",
    "Release",
    "em_pc",
    "from_bif",
    "laplace_pc",
    "load",
    "pc",
    "priv_pc",
    "read_csv",
    "svt_pc",
    "table_pc",
]
