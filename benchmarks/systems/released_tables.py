"""Tables are released once and then read: chapters 15 and 16."""

from dpcgd.book.systems import System
from dpcgd.marginals.learned_pc import learned_pc
from dpcgd.marginals.table_pc import table_pc

SYSTEMS = [
    System("table_pc", "released tables", "proved", table_pc),
    System("learned_pc", "released tables", "proved", learned_pc),
]
