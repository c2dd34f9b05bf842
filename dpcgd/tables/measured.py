"""What a run has measured at once, before anything is read from it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dpcgd.graphs.answers import Answers
from dpcgd.graphs.cpdag import CPDAG
from dpcgd.moments.interactions import Marginals
from dpcgd.moments.noisy_table import NoisyTable
from dpcgd.moments.theorems import theorems_of
from dpcgd.privacy.run import Run
from dpcgd.reading.reader import Precision
from dpcgd.reading.release import MarginalRelease, read_moments

__all__ = ["Measured"]


class Measured(NamedTuple):
    """What a run has measured.

    Attributes
    ----------
    run : Run
    marginals : Marginals
    levels : mapping of str to sequence of str
        Of the variables that were measured: where levels were joined, the new ones.
    joined_levels : mapping
        From each variable whose levels were joined to what has become of each of them.
    caution : str
        A reason to doubt what the edge model will say, by public facts, or an empty text.
    """

    run: Run
    marginals: Marginals
    levels: Mapping[str, Sequence[str]]
    joined_levels: Mapping[str, Mapping[str, str]]
    caution: str = ""

    def release(
        self, graph: CPDAG, answers: Answers | None = None, *, triples: str = "thm-triples"
    ) -> MarginalRelease:
        """Release it with a graph, which follows from it.

        Parameters
        ----------
        graph : CPDAG
        answers : Answers, optional
            Of the search that made the graph.
        triples : str
            The theorem for triples, if there are some.
        """
        whole = isinstance(self.marginals, NoisyTable)
        theorems = () if whole else theorems_of(self.marginals, self.joined_levels, triples=triples)
        return MarginalRelease(
            graph,
            **self.run.receipt(*theorems),
            answers=answers,
            marginals=self.marginals,
            levels={name: tuple(levels) for name, levels in self.levels.items()},
            joined_levels=self.joined_levels,
        )


def read_first(measured: Measured, precision: Precision) -> MarginalRelease:
    """Release what was measured with the graph that is read from it."""
    names = tuple(measured.levels)
    knowledge = measured.run.terms.settings.get("knowledge")
    graph = read_moments(measured.marginals, names, knowledge, precision, measured.caution)
    return measured.release(graph)
