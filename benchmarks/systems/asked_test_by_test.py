"""A PC search that asks one noisy question after the other: chapters 04 to 06."""

from benchmarks.graph_cases import System
from dpcgd.constraint.curate_pc import curate_pc
from dpcgd.constraint.em_pc import em_pc
from dpcgd.constraint.laplace_pc import laplace_pc
from dpcgd.constraint.priv_pc import priv_pc, svt_pc

SYSTEMS = [
    System("Laplace-PC", "test by test", "proved", laplace_pc),
    System("SVT-PC", "test by test", "proved", svt_pc),
    System("EM-PC", "test by test", "proved", em_pc),
    System("Priv-PC", "test by test", "proved", priv_pc),
    System("CURATE-PC", "test by test", "proved", curate_pc),
]
