"""One noisy histogram of both variables, then an additive noise model: chapters 08 and 09."""

from dpcgd.book.pair_systems import PairSystem
from dpcgd.pairwise.anm import histogram_anm

SYSTEMS = [PairSystem("histogram", "noisy histogram", "proved", histogram_anm)]
