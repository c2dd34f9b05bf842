"""Differentially private causal graph discovery: a search, an oracle and a budget."""

from dpcgd.anm import histogram_anm, private_anm
from dpcgd.curate import curate_pc
from dpcgd.datasets import Dataset, read_csv
from dpcgd.exponential import em_pc
from dpcgd.gradients import noleaks
from dpcgd.graphs import CPDAG
from dpcgd.measurements import Measurements
from dpcgd.networks import NETWORKS, Network, from_bif, load
from dpcgd.notears import gram_notears
from dpcgd.privacy import Budget, BudgetSpent
from dpcgd.released import table_pc
from dpcgd.search import Knowledge, Release
from dpcgd.sieve import laplace_pc, pc, priv_pc, svt_pc

__all__ = [
    "CPDAG",
    "NETWORKS",
    "Budget",
    "BudgetSpent",
    "Dataset",
    "Knowledge",
    "Measurements",
    "Network",
    "Release",
    "curate_pc",
    "em_pc",
    "from_bif",
    "gram_notears",
    "histogram_anm",
    "laplace_pc",
    "load",
    "noleaks",
    "pc",
    "priv_pc",
    "private_anm",
    "read_csv",
    "svt_pc",
    "table_pc",
]
