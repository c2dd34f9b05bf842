"""A Bayesian network with error bars, fitted to a release at no further cost.

The probabilities of a variable given its parents come from a table that has the released
interactions and is otherwise as even as possible. This is a log-linear model with one term for each
released number: the distribution of largest entropy among those with these interactions. The
strength of interactions that have not been released is estimated from those that have.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from scipy.special import log_softmax, logsumexp, rel_entr, softmax

from dpcgd.datasets.arguments import check_whole
from dpcgd.datasets.bayesian_networks import Network
from dpcgd.graphs.cpdag import consistent_extension
from dpcgd.graphs.release import Release
from dpcgd.moments.clipped_moments import ClippedMoments, rows_of, vectors_of
from dpcgd.moments.interactions import Marginals, Subset, contrasts, least_variance, subsets_of
from dpcgd.reading.release import check_moments

__all__ = ["FittedNetwork", "fit_network", "max_entropy", "proportional_fit"]

MOST_CELLS = 2**21
"""The largest number of cells of the table of a variable and its parents."""


MOST_NAMES = 8
"""The largest number of variables that a line of text names."""


LARGEST_VARIANCE = 0.25
"""The largest variance of a number between 0 and 1."""


FEWEST = 20
"""The least expected records of a cell that counts for the strength of interactions."""


LEAST_CELLS = 1.0
"""The least number of cells to estimate a strength from, weighted by their shares without noise."""


USUAL, USUAL_CELLS = 0.16, 4.0
"""Strength of interactions on random networks, and the number of cells that it counts for."""


MOST_ENTRIES = 1_000_000
"""The largest number of cells times terms for which Newton's method takes all terms as a matrix."""


CLIPPED = 0.2
"""Deviation of what clipping removed from a product, as a share of the most that it can remove."""


LEAST_PENALTY, MOST_PENALTY = 1e-8, 1e-3
"""Bounds on the penalty of squared coefficients, which is the variance of a term's noise."""


STEPS, CLOSE, SHORTEST = 100, 1e-10, 1e-9
"""The most Newton steps, the decrease at which they end, and the shortest part of a step."""


SWEEPS = 5
"""Number of rounds of proportional fitting."""


TINY = float(np.finfo(float).tiny)
"""The least double of full precision; no divisor is smaller."""


@dataclass(frozen=True)
class FittedNetwork:
    """A network, and the standard errors of its probabilities.

    Attributes
    ----------
    network : Network
    errors : mapping of str to array
        Standard errors, shaped like ``network.tables``: from sampling, from privacy noise, and from
        interactions that have not been released. They are 0.5, the largest possible, if a table is
        not identified.
    identified : mapping of str to bool
        Whether the release determines a variable's probabilities, given its parents, up to errors.
    assumed : frozenset of str
        Variables whose probabilities are the most even ones that fit the release. Their errors
        assume that unreleased interactions are as strong as released ones.
    left_out : mapping of str to tuple of str
        Parents that the network leaves out, because a table has at most two million cells.
    """

    network: Network
    errors: Mapping[str, np.ndarray] = field(repr=False)
    identified: Mapping[str, bool] = field(repr=False)
    assumed: frozenset[str] = field(repr=False)
    left_out: Mapping[str, tuple[str, ...]] = field(repr=False)

    def to_bif(self) -> str:
        """Text of a BIF file with the standard errors as comments."""
        return self.network.to_bif(self.errors)

    def to_pgmpy(self) -> Any:
        """A network of pgmpy, with the errors at its nodes."""
        return self.network.to_pgmpy(self.errors)

    def __repr__(self):
        cells = {v: table.size for v, table in self.network.tables.items()}
        unknown = [v for v, known in self.identified.items() if not known]
        share = f"{sum(cells[v] for v in unknown):,} probabilities of " if unknown else ""
        lines = [
            f"FittedNetwork({len(cells)} variables, {self.network.graph.number_of_edges()} arcs, "
            f"{sum(cells.values()):,} probabilities)",
            f"  not identified: {share}{_named(unknown)}",
            f"  errors rest on an assumption: {_named([v for v in cells if v in self.assumed])}",
            *(f"  parents left out of {v}: {_named(lost)}" for v, lost in self.left_out.items()),
        ]
        return "\n".join(lines)


def _named(variables) -> str:
    """The first few names, and the number of the others."""
    more = len(variables) - MOST_NAMES
    return (", ".join(variables[:MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")


def fit_network(
    release: Release, *, rng: np.random.Generator, dag: nx.DiGraph | None = None, redraws: int = 50
) -> FittedNetwork:
    """Conditional probabilities of a DAG from released moments.

    Parameters
    ----------
    release : MarginalRelease
    rng : numpy.random.Generator
        Generator of the redraws, which simulate the errors from sampling and noise.
    dag : networkx.DiGraph, optional
        The graph; by default a consistent extension of the released graph.
    redraws : int
        Number of redraws, at least 1.

    Returns
    -------
    FittedNetwork

    Raises
    ------
    ValueError
        If the release holds no moments, or a variable that is a number; if the graph is not a DAG
        of its variables, or `redraws` is below 1.

    Privacy
    -------
    Post-processing of the release. Chapter 14, :prf:ref:`thm-table-pc`.

    Notes
    -----
    If all interactions of a variable with its parents have been released, its probabilities are
    exact up to noise and sampling. Otherwise they are those of largest entropy with the released
    interactions, and the errors rest on an assumption: the other interactions are as strong as
    released triples, by the distance of triples from the tables of largest entropy with their
    pairs. If no triple shows this strength, or the table has more than about a million cells times
    terms, the probabilities are marked as not identified. If records were clipped, a fifth of the
    most that clipping can have removed from a moment counts as its deviation.

    On random networks intervals of 1.96 errors cover about 95 % of the probabilities
    (benchmarks/fit_cover.py). A single interaction can be stronger than the others, and no release
    shows that.

    Examples
    --------
    >>> from dpcgd import load
    >>> from dpcgd.tables.table_pc import table_pc
    >>> data = load("cancer", rng=np.random.default_rng(0))
    >>> release = table_pc(data, epsilon=1.0, rng=np.random.default_rng(1))
    >>> fitted = fit_network(release, rng=np.random.default_rng(2), dag=data.truth)
    >>> fitted.network.tables["Smoker"].round(2), bool(fitted.errors["Smoker"].max() < 0.01)
    (array([0.3, 0.7]), True)
    >>> fitted
    FittedNetwork(5 variables, 4 arcs, 20 probabilities)
      not identified: none
      errors rest on an assumption: none
    """
    measured = check_moments(release)
    check_whole("redraws", redraws, 1)
    marginals, names = measured.marginals, list(measured.levels)
    if numbers := [name for name, levels in measured.levels.items() if not levels]:
        problem = f"{numbers[0]!r} is a number, which has no table of probabilities"
        raise ValueError(f"{problem}; give it edges in the schema, and run again")
    dag = consistent_extension(release.graph) if dag is None else dag
    if set(dag) != set(names) or not nx.is_directed_acyclic_graph(dag):
        raise ValueError("dag must have the variables of the release and no cycle")
    wanted = {v: sorted(dag.predecessors(v), key=names.index) for v in names}
    parents = {v: _that_fit(marginals, names, v, group) for v, group in wanted.items()}
    left_out = {v: tuple(u for u in group if u not in parents[v]) for v, group in wanted.items()}
    families = {v: tuple(map(names.index, (*group, v))) for v, group in parents.items()}
    fits = {v: fit_family(marginals, family, redraws, rng) for v, family in families.items()}
    strength = strength_of_interactions(marginals, families.values(), redraws, rng)
    partly = {v for v, family in families.items() if unreleased(marginals, family)}
    assumed = {v for v in partly if strength is not None and has_few_terms(marginals, families[v])}
    known = {v: not left_out[v] and (v in assumed or v not in partly) for v in names}
    tables = {v: fit.table for v, fit in fits.items()}
    return FittedNetwork(
        network=Network("fitted", dict(measured.levels), parents, tables),
        errors={v: _error(marginals, families[v], fits[v], known[v], strength) for v in names},
        identified=known,
        assumed=frozenset(v for v in assumed if known[v]),
        left_out={v: lost for v, lost in left_out.items() if lost},
    )


def _error(marginals, family, fit, known, strength) -> np.ndarray:
    variance = fit.variance if known else np.full(fit.table.shape, LARGEST_VARIANCE)
    if strength is not None:
        variance = variance + strength * unreleased_variance(marginals, family, fit)
    return np.sqrt(np.minimum(variance, LARGEST_VARIANCE))


def _that_fit(marginals, names, child, parents) -> tuple[str, ...]:
    """The parents, without those of least mutual information if their table is too large."""
    kept, number = list(parents), names.index

    def information(v) -> float:
        joint = pair_table(marginals, number(v), number(child))
        return float(rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())

    while math.prod(marginals.levels[number(v)] for v in (*kept, child)) > MOST_CELLS:
        kept.remove(min(kept, key=information))
    return tuple(kept)


class FamilyFit(NamedTuple):
    """The probabilities of a variable given its parents, and their variance.

    ``table`` has an axis for each parent and a last one for the variable. ``variance`` is that of
    its entries. ``weights`` are the probabilities of the parents' levels.
    """

    table: np.ndarray
    variance: np.ndarray
    weights: np.ndarray


def unreleased(marginals: Marginals, family: Sequence[int]) -> int:
    """The degrees of freedom of a variable, given its parents, that have not been released.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released, clipped or not.
    family : sequence of int
        The parents, and the variable last.

    Examples
    --------
    >>> unreleased(Marginals(10, (3, 3, 2)), (0, 1, 2)), unreleased(Marginals(10, (3, 2)), (0, 1))
    (4, 0)
    """
    *parents, child = family
    levels = [marginals.levels[v] for v in parents]
    known = sum(marginals.levels[v] - 1 for v in parents)
    for subset in marginals.released:
        if len(subset) > 2 and child in subset and set(subset) <= set(family):
            known += math.prod(marginals.levels[v] - 1 for v in subset if v != child)
    return math.prod(levels) - 1 - known if marginals.levels[child] > 1 else 0


def fit_family(
    marginals: Marginals, family: Sequence[int], redraws: int, rng: np.random.Generator
) -> FamilyFit:
    """Fit a variable and its parents to all released numbers about them.

    Parameters
    ----------
    marginals : Marginals
        Marginals with all pairs released, clipped or not.
    family : sequence of int
        The parents, and the variable last.
    redraws : int
        Number of redraws of sampling and noise, if the table is fitted by maximum entropy.
    rng : numpy.random.Generator

    Returns
    -------
    FamilyFit
        Its variance comes from sampling and noise alone. It is the largest possible one if the
        table is too large for redraws.

    Privacy
    -------
    Post-processing.
    """
    if all(tuple(sorted(part)) in marginals.released for part in subsets_of(tuple(family))):
        return released_fit(marginals, family)
    if not has_few_terms(marginals, family):
        logs = proportional_fit(marginals, family)
        variance = np.broadcast_to(LARGEST_VARIANCE, logs.shape)
        return FamilyFit(softmax(logs, axis=-1), variance, np.exp(logsumexp(logs, axis=-1)))
    logs, columns, spread = max_entropy(marginals, family)
    table = np.exp(log_softmax(logs, axis=-1))
    table = np.maximum(table, 1 / marginals.n**2 / table.size)  # no probability is zero
    table /= table.sum(axis=-1, keepdims=True)
    drawn = columns @ (spread @ rng.standard_normal((spread.shape[1], redraws)))
    moved = softmax(logs + drawn.T.reshape(redraws, *logs.shape), axis=-1) - table
    return FamilyFit(table, (moved**2).mean(axis=0), np.exp(logsumexp(logs, axis=-1)))


def released_fit(marginals: Marginals, family: Sequence[int]) -> FamilyFit:
    """The fit if every interaction has been released: exact up to noise and sampling.

    Notes
    -----
    The interactions of the parents alone give the weights. The other interactions give the
    probabilities, times the weights, and their noise is independent of that of the weights.
    """
    joint = marginals.table(*family)
    weights = joint.sum(axis=-1, keepdims=True)
    table, levels = joint / weights, joint.shape[-1]
    own, parents = _noise(marginals, family)
    noise = (own + (table - 1 / levels) ** 2 * parents) / weights**2
    sampling = table * (1 - table) / (marginals.n * weights)
    return FamilyFit(table, np.minimum(sampling + noise, LARGEST_VARIANCE), weights[..., 0])


def _noise(marginals, family) -> tuple[float, float]:
    """Variances of the noise in a cell, from the variable's interactions, and in a weight."""
    own = parents = 0.0
    for subset in subsets_of(tuple(family)):
        held = math.prod(1 - 1 / marginals.levels[v] for v in subset)
        left = math.prod(marginals.levels[v] for v in family if v not in subset)
        variance = marginals.moment(*subset).deviation ** 2 * held / left**2
        own += variance if family[-1] in subset else 0.0
        parents += 0.0 if family[-1] in subset else variance * marginals.levels[family[-1]] ** 2
    return own, parents


def unreleased_variance(marginals: Marginals, family: Sequence[int], fit: FamilyFit) -> np.ndarray:
    """Variance of probabilities if unreleased interactions are as strong as released ones.

    Parameters
    ----------
    marginals : Marginals
    family : sequence of int
        The parents, and the variable last.
    fit : FamilyFit

    Returns
    -------
    array
        One number for each level of the variable: the variance that the released interactions with
        its parents give its probability, scaled to the unreleased degrees of freedom.

    Privacy
    -------
    Post-processing.
    """
    parents = tuple(range(len(family) - 1))
    weights = fit.weights[..., None]
    mean = (weights * fit.table).sum(axis=parents)
    moved = (weights * (fit.table - mean) ** 2).sum(axis=parents)
    left = unreleased(marginals, family)
    return moved * left / max(1, math.prod(marginals.levels[v] for v in family[:-1]) - 1 - left)


def strength_of_interactions(
    marginals: Marginals, families: Iterable[Sequence[int]], redraws: int, rng: np.random.Generator
) -> float | None:
    """Distance of triples of a variable and two parents from the tables that their pairs predict.

    Parameters
    ----------
    marginals : Marginals
    families : iterable of sequence of int
        For each family the parents, and the variable last.
    redraws : int
    rng : numpy.random.Generator

    Returns
    -------
    float or None
        Mean square of the distance, over :func:`unreleased_variance` of the pairs; 1 if
        interactions of three variables are as strong as those of two. None if no triple shows it.

    Privacy
    -------
    Post-processing.
    """
    low = {part: moment for part, moment in marginals.released.items() if 0 < len(part) < 3}
    pairs = Marginals(marginals.n, marginals.levels, low)
    triples = [(*two, child) for *parents, child in families for two in combinations(parents, 2)]
    released = (triple for triple in triples if tuple(sorted(triple)) in marginals.released)
    few = [triple for triple in released if has_few_terms(pairs, triple)]
    sums = [_compared(marginals, pairs, triple, redraws, rng) for triple in few] or [(0.0,) * 3]
    moved, expected, cells = np.sum(sums, axis=0)
    if not cells > LEAST_CELLS:
        return None
    return max(0.0, (cells * moved / expected + USUAL_CELLS * USUAL) / (cells + USUAL_CELLS))


def _compared(marginals, pairs, triple, redraws, rng) -> tuple[float, float, float]:
    """Squared distance of a triple beyond its noise, its prediction by pairs, and its cells."""
    exact, fit = released_fit(marginals, triple), fit_family(pairs, triple, redraws, rng)
    noise = np.maximum(exact.variance - fit.variance, 0.0)
    size = unreleased_variance(pairs, triple, fit)
    many = marginals.n * exact.weights[..., None] * exact.table > FEWEST
    weight = many * size / (size + noise + np.finfo(float).tiny)
    moved = weight * ((exact.table - fit.table) ** 2 - noise)
    return float(moved.sum()), float((weight * size).sum()), float(weight.sum())


def has_few_terms(marginals: Marginals, variables: Sequence[int]) -> bool:
    """Whether :func:`max_entropy` can fit a table of these variables, by public facts."""
    subsets = _subsets(marginals, variables)
    terms = sum(math.prod(marginals.levels[v] - 1 for v in subset) for subset in subsets)
    return math.prod(marginals.levels[v] for v in variables) * max(1, terms) <= MOST_ENTRIES


def max_entropy(
    marginals: Marginals, variables: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The log-linear model whose expected terms equal the released ones.

    Parameters
    ----------
    marginals : Marginals
        Marginals with these variables and their pairs released, clipped or not.
    variables : sequence of int

    Returns
    -------
    logs : array
        Logarithms of probabilities, with an axis for each variable.
    columns, spread : array
        Their product, times independent standard normal numbers, simulates the errors of the
        logarithms from sampling and noise.

    Privacy
    -------
    Post-processing.

    Notes
    -----
    Newton's method on the dual. The squares of the coefficients have a small penalty, about the
    variance of the noise. It keeps them finite if noise has left no table with these terms.
    """
    terms = [_term(marginals, variables, subset) for subset in _subsets(marginals, variables)]
    columns, means, deviations = map(np.hstack, zip(*terms, strict=True))
    means = np.clip(means, columns.min(axis=0), columns.max(axis=0))
    logs, curvature = _newton(columns, means, np.clip(deviations**2, LEAST_PENALTY, MOST_PENALTY))
    noise = np.linalg.solve(curvature, np.diag(deviations))
    sampling = np.linalg.inv(np.linalg.cholesky(curvature)).T / math.sqrt(marginals.n)
    shape = [marginals.levels[v] for v in variables]
    return logs.reshape(shape), columns, np.hstack([noise, sampling])


def _newton(columns, means, penalty) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the probabilities, and the curvature of the dual there."""
    weights = np.zeros(len(means))
    loss, logs = _dual(columns, means, penalty, weights)
    for _ in range(STEPS):
        table = np.exp(logs)
        expected = table @ columns
        centred = columns - expected
        curvature = (centred.T * table) @ centred + np.diag(penalty)
        step = np.linalg.solve(curvature, expected - means + penalty * weights)
        decrease, part = step @ curvature @ step, 1.0
        if decrease < CLOSE:
            break
        while part > SHORTEST:
            new, moved = _dual(columns, means, penalty, weights - part * step)
            if new <= loss - part * decrease / 4:
                break
            part /= 2
        weights, loss, logs = weights - part * step, new, moved
    return logs, curvature


def _dual(columns, means, penalty, weights) -> tuple[float, np.ndarray]:
    """The objective of the dual, and the logarithms of the probabilities."""
    logs = columns @ weights
    total = logsumexp(logs)
    return total - weights @ means + penalty @ weights**2 / 2, logs - total


def _subsets(marginals, variables) -> list[Subset]:
    """Subsets of these variables whose interaction has been released, clipped or not."""
    if isinstance(marginals, ClippedMoments):
        varying = [v for v in variables if marginals.levels[v] > 1]
        return [*combinations(variables, 1), *combinations(varying, 2)]
    return [part for part in marginals.released if part and set(part) <= set(variables)]


def _term(marginals, variables, subset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of an interaction over the cells of a table, its means, and deviations of noise."""
    axes = [v for v in variables if v in subset]
    if clipped := isinstance(marginals, ClippedMoments) and len(axes) == 2:
        values, deviations = _unclipped(marginals, *axes)
    else:
        values, deviations = marginals.moment(*axes)
    ones = {v: np.ones((marginals.levels[v], 1)) for v in variables}
    own = {v: vectors_of(marginals, v) if clipped else contrasts(marginals.levels[v]) for v in axes}
    columns = reduce(np.kron, (ones | own).values())
    return columns, values.ravel(), np.broadcast_to(deviations, values.shape).ravel()


def _unclipped(marginals, x, y) -> tuple[np.ndarray, np.ndarray]:
    """Moments of two variables corrected for clipping, and their deviations.

    Clipping multiplies all products of a record by the same factor. So the square of what it
    removed from a product of two variables is at most the product of what it removed from their
    squares (Cauchy and Schwarz). The latter follows from single levels, which are not clipped.
    """
    rows = rows_of(marginals.widths)
    (left, lost), (right, also) = (_correction(marginals, v, rows[v]) for v in (x, y))
    values = left @ marginals.moments[rows[x], rows[y]] @ right.T
    noise = np.outer((left**2).sum(axis=1), (right**2).sum(axis=1)) * marginals.deviation**2
    return values, np.sqrt(noise + CLIPPED**2 * np.outer(lost, also))


def _correction(marginals, v, rows) -> tuple[np.ndarray, np.ndarray]:
    """The matrix that corrects a variable's moments for clipping, and what clipping removed.

    The second result is the diagonal of the unclipped moments minus the clipped ones.
    """
    vectors, own = vectors_of(marginals, v), marginals.moments[rows, rows]
    whole = (vectors.T * marginals.table(v)) @ vectors
    floor = least_variance(marginals.deviation, marginals.n)
    turned = _power(whole, 0.5, 0.0) @ _power(own, -0.5, floor)
    return turned, np.maximum(np.diag(whole - own), 0.0)


def _power(matrix, exponent, floor) -> np.ndarray:
    """Power of a symmetric matrix whose eigenvalues are raised to the floor first."""
    values, turned = np.linalg.eigh(matrix)
    return (turned * np.maximum(values, floor) ** exponent) @ turned.T


def proportional_fit(marginals: Marginals, variables: Sequence[int]) -> np.ndarray:
    """The log-linear model of a table with many cells, by proportional fitting to its pairs.

    Parameters
    ----------
    marginals : Marginals
        Marginals with these variables and their pairs released, clipped or not.
    variables : sequence of int

    Returns
    -------
    array
        Logarithms of probabilities, as close to the model as a few rounds come.

    Privacy
    -------
    Post-processing.
    """
    shape = [marginals.levels[v] for v in variables]
    pairs = [*combinations(range(len(variables)), 2)]
    wanted = [pair_table(marginals, variables[i], variables[j]) for i, j in pairs]
    fitted = np.full(shape, 1 / math.prod(shape))
    for _ in range(SWEEPS):
        for pair, table in zip(pairs, wanted, strict=True):
            others = tuple(i for i in range(len(variables)) if i not in pair)
            fitted *= np.expand_dims(table / np.maximum(fitted.sum(axis=others), TINY), others)
    return np.log(np.maximum(fitted, TINY))


def pair_table(marginals: Marginals, x: int, y: int) -> np.ndarray:
    """Probabilities of the levels of two variables; none is zero."""
    if (min(x, y), max(x, y)) in marginals.released:
        return marginals.table(x, y)
    return np.exp(max_entropy(marginals, (x, y))[0])
