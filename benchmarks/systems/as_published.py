"""The papers' own versions: what they claim, and what their guarantee is worth.

Of Priv-PC, SVT-PC and EM-PC epsilon is that of a round, and the total is read when the run is over;
of the other two it is the total that they claim.
"""

from dpcgd_book.systems import as_published as published

from benchmarks.graph_cases import System

CLAIMED, FAMILY = "claimed, not proved", "as published"
KENDALL = "larger, no bound known: one record moves a p-value by more than is paid for"
INFINITE = "infinite: an output is possible on one data set and impossible on its neighbour"
AUDITED = "several times the claim: an audit of a step shows it"

SYSTEMS = [
    System("published-SVT-PC", FAMILY, CLAIMED, published.published_svt_pc, really=KENDALL),
    System("published-Priv-PC", FAMILY, CLAIMED, published.published_priv_pc, really=KENDALL),
    System("published-EM-PC", FAMILY, CLAIMED, published.published_em_pc, really=INFINITE),
    System("published-CURATE-PC", FAMILY, CLAIMED, published.published_curate_pc, really=KENDALL),
    System("published-NoLeaks", FAMILY, CLAIMED, published.published_noleaks, really=AUDITED),
]
