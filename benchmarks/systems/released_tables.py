"""Tables are released once and then read: chapters 15 and 16.

The edges of learned_pc are those of largest expected F1.
"""

from functools import partial

from benchmarks.graph_cases import System
from dpcgd.tables.learned_pc import learned_pc
from dpcgd.tables.table_pc import table_pc

SYSTEMS = [
    System("table_pc", "released tables", "proved", table_pc),
    System("learned_pc", "released tables", "proved", partial(learned_pc, precision="f1")),
]
