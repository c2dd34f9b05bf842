"""Runs of the edge model beside rules written by hand, and what chapter 12 says of them."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpcgd import CPDAG, Budget, graph_from_moments
from dpcgd.datasets.random_networks import any_network
from dpcgd.moments.clipped_moments import measure_moments
from dpcgd.moments.interactions import paid
from dpcgd.privacy import filters, noise
from dpcgd.reading.reader import edge_probabilities, first_reading, most_likely_edges
from dpcgd_book.figures import charts
from dpcgd_book.results import stored
from dpcgd_book.results.graph_scores import over_networks, scores
from dpcgd_book.results.larger_networks import drawn
from dpcgd_book.results.table_cases import released

__all__ = ["SYSTEMS", "Runs", "beyond", "calibration", "fresh_case", "named_case"]

SYSTEMS = ("graph_from_moments", "table_pc")
"""The names of both systems in rows on file."""

BOUNDS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
"""Ends of the bands of probabilities that are counted."""


def _counted(what, probabilities, true) -> dict[str, float]:
    """By band of what was said: how many, the sum of that, and how many are true."""
    said = np.array(list(probabilities.values()), float)
    right = np.array([key in true for key in probabilities], int)
    band = np.clip(np.searchsorted(BOUNDS, said) - 1, 0, len(BOUNDS) - 2)
    sums = {"": np.ones(len(said), int), " said": said, " true": right}
    bands = product(range(len(BOUNDS) - 1), sums.items())
    return {f"{what} {k}{kind}": own[band == k].sum().item() for k, (kind, own) in bands}


def _by_model(data, private) -> dict[str, float]:
    """Scores, what was said, and scores of edges read once or from pairs as they are."""
    release = graph_from_moments(data, precision="f1", **private)
    account = filters.GaussianFilter(Budget(private["epsilon"], private["delta"]))
    truth = CPDAG.from_dag(data.truth)
    result = scores(release.graph, data.truth)
    result |= _counted("pairs", release.probabilities, truth.skeleton)
    result |= _counted("arrows", release.arrow_shares, truth.arrows)
    measure = paid(account, noise.SeededNoise(private["rng"]))
    likely = {
        "once F1": first_reading(release.marginals),
        "twice F1": edge_probabilities(release.marginals),
        "pairs F1": edge_probabilities(measure_moments(data, measure, account.rho, clipped=False)),
    }
    graphs = {k: CPDAG(data.variables, most_likely_edges(own, "f1")) for k, own in likely.items()}
    return result | {way: graph.skeleton_f1(data.truth) for way, graph in graphs.items()}


def _by_rules(data, private) -> dict[str, Any]:
    release = released(data, **private)
    return scores(release.graph, data.truth) if release else {"F1": None}


def named_case(
    system: str, network: str, n: int, epsilon: float, delta: float, run: int, seed: int
) -> dict[str, Any]:
    """Scores of one system on a network with a name."""
    rng = np.random.default_rng([seed, run, 15])
    private = {"epsilon": epsilon, "delta": delta, "allow_delta": True, "rng": rng}
    read = _by_model if system == SYSTEMS[0] else _by_rules
    return read(drawn(network, run, n, seed), private)


def fresh_case(n: int, epsilon: float, delta: float, run: int, seed: int) -> dict[str, Any]:
    """Scores of both systems on a network of a seed that the model was not trained on."""
    rng = np.random.default_rng([seed, run, 77])
    data = any_network(int(rng.integers(6, 25)), rng).sample(n, rng=rng)
    private = {"epsilon": epsilon, "delta": delta, "rng": rng}
    result = _by_model(data, private)
    return result | {f"table {score}": own for score, own in _by_rules(data, private).items()}


def calibration(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """What was said of pairs, the share that is true, and its error, over networks by source."""
    bands = []
    for k in range(1, len(BOUNDS) - 1):
        pairs, said, true = (rows[f"pairs {k}{kind}"] for kind in ("", " said", " true"))
        if pairs.sum() >= 10:
            share = true.sum() / pairs.sum()
            apart = (true - share * pairs).groupby(rows[source]).sum()
            error = np.sqrt((apart**2).sum()) / pairs.sum()
            bands.append([said.sum() / pairs.sum(), share, error])
    return pd.DataFrame(bands, columns=["said", "true", "error"])


def beyond(gains: pd.DataFrame, sign: int) -> str:
    """Names of the rows whose mean is more than two standard errors above or below zero."""
    clear = sign * gains["mean"] > 2 * gains["error"] + 1e-9
    return ", ".join(gains.index[clear]) or "none"


def _on_file(full: stored.FullResults, networks, larger, n, epsilon, delta) -> tuple:
    """Rows of both kinds from results on file; with other parameters a few runs are made."""

    def cases(names, runs, size, budgets, systems=SYSTEMS):
        keys = "network", "epsilon", "run", "system"
        every = product(names, budgets, range(runs), systems)
        common = {"n": size, "delta": delta, "seed": full.seed}
        return [common | dict(zip(keys, own, strict=True)) for own in every]

    budgets = (0.1, 0.3, 1.0) if epsilon == 1.0 else (epsilon,)
    every = cases(networks, 5, n, budgets) + cases(larger, 3, n, budgets)
    few = cases([*networks[-3:], larger[0]], 2, n, [epsilon])
    if n != 10_000:
        every += cases(networks, 5, 10_000, [epsilon])
        few += cases(networks[:1], 2, 10_000, [epsilon])
    for size in {10_000, 1_000_000} - {n}:
        names = larger if size < n else [*networks, *larger]
        every += cases(names, 2, size, [epsilon], SYSTEMS[:1])
    named = full.rows("f1_on_named", named_case, every, few=few, compare="F1", rerun=2)
    usual = {"n": n, "epsilon": epsilon, "delta": delta, "run": 0, "seed": full.seed}
    places = product(budgets[-2:], range(60))
    every = [usual | {"epsilon": budget, "run": run} for budget, run in places]
    few = [case for case in every if case["run"] < 6 and case["epsilon"] == epsilon]
    fresh = full.rows("fresh_networks", fresh_case, every, few=few, compare="F1", rerun=2, repeat=4)
    return named.astype({"F1": float}), fresh


class Runs:
    """Runs on file, or a few new ones, and what follows from them.

    Parameters
    ----------
    full : FullResults
    networks, larger : sequence of str
        The networks with names, of both groups.
    n, epsilon, delta : number
        Of the chapter.

    Attributes
    ----------
    named, fresh : DataFrame
        Rows of :func:`named_case` and of :func:`fresh_case`.
    groups : mapping of str to sequence of str
        From the title of a group to its networks.
    names : list of str
        All networks of both groups with rows.
    budgets : list of float
        All epsilons of the networks with names.
    read, read_here : DataFrame
        Rows of the edge model, and those at the chapter's own records and budget.
    """

    def __init__(self, full: stored.FullResults, networks, larger, n, epsilon, delta):
        named, self.fresh = _on_file(full, networks, larger, n, epsilon, delta)
        kept = [name for name in larger if name in set(named.network)]
        self.groups = {"the seven of the book": networks, "larger networks": kept}
        self.named, self.n, self.epsilon = named, n, epsilon
        own = set(named[named.n == n].network)
        self.names = [name for group in self.groups.values() for name in group if name in own]
        self.budgets = sorted(named.epsilon.astype(float).unique())
        self.read = named[named.system == SYSTEMS[0]]
        self.read_here = self.read[(self.read.n == n) & (self.read.epsilon == epsilon)]

    def paired(self, names: Sequence[str], budget: float, n: int | None = None) -> pd.DataFrame:
        """Mean F1 over networks and its error, of both systems and of their paired gain."""
        here = self.named[self.named.network.isin(names) & (self.named.epsilon == budget)]
        here = here[here.n == (n or self.n)]
        both = here.pivot(index=["network", "run"], columns="system", values="F1")
        both = both.reindex(columns=SYSTEMS).dropna()
        both["gain"] = both[SYSTEMS[0]] - both[SYSTEMS[1]]
        mean, error = over_networks(both.groupby("network"))
        return pd.DataFrame({"mean": mean, "error": error})

    def gains(self, budget: float) -> pd.DataFrame:
        """Gain of the edge model on each network, and its error."""
        return pd.DataFrame({x: self.paired([x], budget).loc["gain"] for x in self.names}).T

    def frontier(self) -> Figure:
        """Mean F1 of both systems against epsilon, a panel for each group."""
        panels: dict = {}
        free = stored.best_without_privacy(self.n)
        for title, group in self.groups.items():
            means = pd.concat({b: self.paired(group, b) for b in self.budgets}).swaplevel()
            rows = {x: means.loc[x] for x in SYSTEMS[::-1]}
            panels[title] = {x: (self.budgets, m["mean"], 2 * m["error"]) for x, m in rows.items()}
            best = [free.reindex(group).mean()] * len(self.budgets)
            panels[title]["best, not private"] = self.budgets, best
        labels: dict = {"xlabels": [r"guaranteed $\varepsilon$"] * 2, "ylabel": "mean skeleton F1"}
        figure = charts.curves(panels, log="x", limits=(0, 1.03), aside=1.05, **labels)
        for axes in figure.axes:
            axes.minorticks_off()
            axes.set_xticks(self.budgets, [f"{budget:g}" for budget in self.budgets])
        return figure

    def by_records(self) -> dict[str, pd.Series]:
        """Mean F1 of the edge model by records, of each group whose networks all have rows."""
        cells = self.read[self.read.epsilon == self.epsilon].groupby(["n", "network"])
        means = cells.F1.mean().unstack()
        groups = self.groups.items()
        return {x: means.reindex(columns=g).mean(axis=1, skipna=False).dropna() for x, g in groups}

    @staticmethod
    def counted(rows: pd.DataFrame, name: str, bands: Sequence[int]) -> list[float]:
        """Pairs of these bands in a run on a network, what was said of them, how many are true."""
        own = rows[rows.network == name] if name in set(rows.network) else rows
        kinds = ([f"pairs {k}{kind}" for k in bands] for kind in ("", " said", " true"))
        return [own[columns].to_numpy().sum() / len(own) for columns in kinds]

    def readings(self) -> pd.DataFrame:
        """F1 of a first reading, what a second one adds, and what is lost from pairs."""
        names = zip(("seven networks", "larger"), self.groups.values(), strict=True)
        rows = {kind: self.read_here.query("network in @group") for kind, group in names}
        worth: dict = {}
        for kind, own in (rows | {"random": self.fresh}).items():
            f1 = own[["once F1", "twice F1", "pairs F1"]].astype(float).diff(axis=1)
            worth[kind] = {("read once", ""): own["once F1"].astype(float).mean()}
            for change, column in (("read again", "twice F1"), ("from pairs", "pairs F1")):
                worth[kind][change, "change"] = f1[column].mean()
                worth[kind][change, "±"] = f1[column].sem()
        return pd.DataFrame(worth).T

    def together(self) -> pd.DataFrame:
        """F1 of these runs and of what practitioners use instead, on the same records."""
        others, table = stored.yardsticks(), stored.system_table()
        others = others[
            others.system.isin(("MST", "AIM")) & (others.delta == self.named.delta.iloc[0])
        ]
        table = table[table.system.isin(stored.WITHOUT_PRIVACY)]
        rows = pd.concat([self.named, others, table]).dropna(subset="F1")
        columns = ["system", "network", "epsilon", "run", "F1"]
        return rows.loc[rows.n == self.n, columns].reset_index(drop=True)

    def apart(self, ours: str, other: str, budget: float) -> pd.DataFrame:
        """Difference of mean F1 on each network that both have, and its standard error."""
        cells = self.together().query("epsilon == @budget").groupby(["system", "network"]).F1
        mean, error = (x.unstack().reindex([ours, other]).T for x in (cells.mean(), cells.sem()))
        others = error[other].fillna(error[ours])  # one run has no spread
        gap = {"mean": mean[ours] - mean[other], "error": np.hypot(error[ours], others)}
        return pd.DataFrame(gap).reindex(self.names).dropna()
