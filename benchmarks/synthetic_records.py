"""Synthetic records under zero-concentrated privacy, by MST and AIM with mbi: for yardsticks.py.

Written from the papers (McKenna, Miklau and Sheldon 2021; McKenna, Mullins, Sheldon and Miklau
2022); mbi fits the graphical model and draws from it. Imported in .venv/yardsticks.

**Neighbours replace one record, n is public.** The papers, and OpenDP's ``MST`` and ``AIM``, count
records added or removed. Replacing one is both at once, and every step here is priced for it:

- A table of counts moves by 1 in two cells, a squared length of 2 instead of 1: noise of deviation
  s costs 2 / (2 s^2) instead of 1 / (2 s^2).
- The distance of a table from the model, summed over cells, moves by at most 2 instead of 1.

OpenDP's own way, ``unit_of(contributions=2)``, takes a squared length of 4 for a table: 1.4 times
the noise of this file at the same guarantee. The number of records is known, not measured.
"""

import itertools
import math
import time

import numpy as np

SQUARED_MOVE, MOVE = 2.0, 2.0
"""Of a table of counts when one record is replaced: squared length, and sum over its cells."""

HALF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""

STEPS = 1000
"""Of mirror descent, a fit: as in the papers."""

MEASURED = 0.9
"""Share of a round of AIM that is spent on the table; the rest chooses it."""

LARGEST_MODEL = 80.0
"""Megabytes of AIM's model when all is spent."""

LARGEST_JOINT = 2**20
"""Cells of a domain whose whole distribution AIM takes from the model at once."""

LARGEST_SQUARE = 2**8
"""Cells of a domain to whose whole distribution AIM fits all tables at once."""


class PaidRecords:
    """Records whose tables are paid for in zCDP before they are looked at."""

    def __init__(self, codes, levels, rho, rng):
        self.codes, self.levels, self.rng = codes.astype(np.int64), [int(k) for k in levels], rng
        self.n, self.d = codes.shape
        self.rho, self.spent, self._kept = rho, 0.0, {}

    @property
    def left(self) -> float:
        return self.rho - self.spent

    def pay(self, rho):
        if rho > self.left + 1e-9 * self.rho:
            raise ValueError("over budget: nothing was looked at")
        self.spent += rho

    def size(self, clique) -> int:
        return math.prod(self.levels[v] for v in clique)

    def noisy(self, clique, deviation):
        """A table of counts with normal noise on each cell."""
        self.pay(table_cost(deviation))
        return self._counts(clique) + deviation * self.rng.normal(size=self.size(clique))

    def chosen(self, expected, epsilon, weights=1.0, allowed=0.0):
        """The clique whose table is farthest from what is expected: an exponential mechanism.

        Distances are summed over cells, less what is allowed, times a weight.
        """
        self.pay(choice_cost(epsilon))
        exponents = self._exponents(expected, epsilon, weights, allowed)
        return list(expected)[int(np.argmax(exponents + self.rng.gumbel(size=len(exponents))))]

    def _exponents(self, expected, epsilon, weights, allowed):
        """Log-odds of the choice: replacing a record moves each by at most epsilon / 2."""
        far = [np.abs(self._counts(c) - table).sum() for c, table in expected.items()]
        scores = np.asarray(weights) * (np.array(far) - allowed)
        return epsilon * scores / (2 * MOVE * np.max(weights))

    def _counts(self, clique):
        if clique not in self._kept:
            cells = np.ravel_multi_index(self.codes[:, clique].T, [self.levels[v] for v in clique])
            self._kept[clique] = np.bincount(cells, minlength=self.size(clique))
        return self._kept[clique]


def table_cost(deviation) -> float:
    return SQUARED_MOVE / (2 * deviation**2)


def deviation_for(rho) -> float:
    return math.sqrt(SQUARED_MOVE / (2 * rho))


def choice_cost(epsilon) -> float:
    """Of an exponential mechanism: its output's log-odds move within a range of epsilon."""
    return epsilon**2 / 8


def epsilon_for(rho) -> float:
    return math.sqrt(8 * rho)


class Fit:
    """Measured tables and the graphical model that mbi fits to them."""

    def __init__(self, levels, n):
        import jax

        jax.config.update("jax_enable_x64", True)
        import mbi

        self._mbi, self.n = mbi, n
        self.domain = mbi.Domain(tuple(range(len(levels))), tuple(levels))
        self.measured, self.model = [], None

    def add(self, clique, table, deviation):
        self.measured.append(self._mbi.LinearMeasurement(table, clique, deviation))

    def renew(self):
        settings = {"known_total": self.n, "iters": STEPS, "warm_start": self.model}
        descent = self._mbi.estimation.MirrorDescent()
        self.model = descent.estimate(self.domain, self._loss(), **settings)

    def _loss(self):
        """In the order in which records are drawn: the same sums are not compiled twice."""
        return sorted(self.measured, key=lambda of: of.clique)

    def tables(self, cliques) -> dict:
        """The model's own tables."""
        if self.domain.size() > LARGEST_JOINT:
            return {c: np.asarray(self.model.project(c).values).ravel() for c in cliques}
        every, joint = tuple(range(len(self.domain))), self._joint()
        return {c: joint.sum(tuple(v for v in every if v not in c)).ravel() for c in cliques}

    def _joint(self):
        """Every cell of the domain, from the factors: nothing to compile."""
        joint = np.zeros(self.domain.shape)
        for clique in (potentials := self.model.potentials).cliques:
            others = [v for v in range(joint.ndim) if v not in clique]
            joint += np.expand_dims(np.asarray(potentials[clique].values), others)
        joint = np.exp(joint - joint.max())
        return joint * (self.n / joint.sum())

    def within(self, megabytes, cliques) -> list:
        """Those with which the model is no larger; a junction tree never is than the domain."""
        if self.domain.size() * 8 / 2**20 <= megabytes:
            return list(cliques)
        size = self._mbi.junction_tree.hypothetical_model_size
        return [c for c in cliques if size(self.domain, [*self.model.cliques, c]) <= megabytes]

    def draw(self):
        """As many records as there were, by mbi's rounding."""
        drawn = self.model.synthetic_data(self.n).to_dict()
        return np.column_stack([drawn[v] for v in range(len(self.domain))])


class FitOfFewCells(Fit):
    """The same optimum by fewer steps of work: all tables as one of every cell of the domain.

    How far a distribution is from all tables is a square about the one that is nearest to them,
    and the model has the same shape whatever was measured: it is compiled once.
    """

    def __init__(self, levels, n):
        super().__init__(levels, n)
        self._cells = np.indices(levels).reshape(len(levels), -1)
        self._weights = np.zeros((self._cells.shape[1],) * 2)
        self._pull = np.zeros(self._cells.shape[1])

    def add(self, clique, table, deviation):
        self.measured.append(clique)
        at = tuple(self._cells[v] for v in clique)
        of = np.ravel_multi_index(at, [self.domain.shape[v] for v in clique])
        self._weights += (of[:, None] == of) / deviation**2
        self._pull += table[of] / deviation**2

    def _loss(self):
        nearest, *_ = np.linalg.lstsq(self._weights, self._pull)
        every, steepest = tuple(range(len(self._cells))), np.linalg.norm(self._weights, 2)
        return self._mbi.MarginalLossFn((every,), square, (self._weights, nearest), steepest)


def square(marginals, weights_and_nearest):
    weights, nearest = weights_and_nearest
    away = marginals[marginals.cliques[0]].values.ravel() - nearest
    return away @ weights @ away / 2


def on_simplex(table, total):
    """The nearest table without negative cells that has this total."""
    ordered = np.sort(table)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(table) + 1)
    return np.maximum(table - excess[np.flatnonzero(ordered > excess)[-1]], 0)


def mst(records: PaidRecords):
    """A third each for single variables, for the choice of a tree of pairs, and for the pairs."""
    share, d = records.rho / 3, records.d
    fit, alone = Fit(records.levels, records.n), []
    deviation = deviation_for(share / d)
    for v in range(d):
        fit.add((v,), table := records.noisy((v,), deviation), deviation)
        alone.append(on_simplex(table, records.n) / records.n)
    tree, part = [], list(range(d))  # variables with the same number are connected
    pairs = itertools.combinations(range(d), 2)
    independent = {(v, w): records.n * np.outer(alone[v], alone[w]).ravel() for v, w in pairs}
    while len(tree) < d - 1:
        between = {(v, w): of for (v, w), of in independent.items() if part[v] != part[w]}
        v, w = records.chosen(between, epsilon_for(share / (d - 1)))
        part = [part[v] if of == part[w] else of for of in part]
        tree.append((v, w))
    deviation = deviation_for(share / (d - 1))
    for pair in tree:
        fit.add(pair, records.noisy(pair, deviation), deviation)
    fit.renew()
    return fit.draw()


def split(rho) -> tuple[float, float]:
    """The deviation and the epsilon of one of AIM's rounds that costs so much."""
    return deviation_for(MEASURED * rho), epsilon_for((1 - MEASURED) * rho)


def workload(d) -> dict:
    """Tables of up to three variables, each with AIM's weight."""
    largest = list(itertools.combinations(range(d), min(3, d)))
    cliques = [c for k in (1, 2, 3) for c in itertools.combinations(range(d), k)]
    return {c: sum(len({*c} & {*of}) for of in largest) for c in cliques}


def aim(records: PaidRecords, *, patience):
    """Rounds that choose and measure the table of up to three variables that fits worst.

    Raises
    ------
    TimeoutError
        After so many seconds of processor time.
    """
    started, weight = time.process_time(), workload(records.d)
    deviation, epsilon = split(records.rho / (16 * records.d))
    few = math.prod(records.levels) <= LARGEST_SQUARE
    fit = (FitOfFewCells if few else Fit)(records.levels, records.n)
    for v in range(records.d):
        fit.add((v,), records.noisy((v,), deviation), deviation)
    fit.renew()
    while records.left > 1e-9 * records.rho:
        if time.process_time() - started > patience:
            raise TimeoutError(f"over {patience:g} s of processor time")
        if records.left <= 2 * (table_cost(deviation) + choice_cost(epsilon)):
            deviation, epsilon = split(records.left)
        before = fit.tables(fit.within(LARGEST_MODEL * records.spent / records.rho, weight))
        noise = {c: HALF_NORMAL * deviation * records.size(c) for c in before}
        best = records.chosen(before, epsilon, [weight[c] for c in before], [*noise.values()])
        fit.add(best, records.noisy(best, deviation), deviation)
        fit.renew()
        if np.abs(fit.tables([best])[best] - before[best]).sum() <= noise[best]:
            deviation, epsilon = deviation / 2, 2 * epsilon
    return fit.draw()


SYNTHESIZERS = {"MST": mst, "AIM": aim}
