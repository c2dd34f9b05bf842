"""Tables are released once and then read: chapters 12 and 14.

The edges of graph_from_moments are those of largest expected F1; private_graph is the recommended
call as it is, and draws what is likelier than not.
"""

from functools import partial

from benchmarks.graph_cases import System
from dpcgd.tables.private_graph import graph_from_moments, private_graph
from dpcgd.tables.table_pc import table_pc

BY_F1 = partial(graph_from_moments, precision="f1")
SYSTEMS = [
    System("table_pc", "released tables", "proved", table_pc),
    System("graph_from_moments", "released tables", "proved", BY_F1, seeded_as="learned_pc"),
    System("private_graph", "released tables", "proved", private_graph),
]
