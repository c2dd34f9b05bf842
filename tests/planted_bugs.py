"""Bugs planted by hand, each a small patch at one place: something has to notice every one of them.

A bug is looked for by replaying the systems named with it, then, if they agree, by the test files
named with it, but for tests that hold a run against the numbers of a seed.
"""

from dataclasses import dataclass

__all__ = ["BUGS", "Bug"]


@dataclass(frozen=True)
class Bug:
    """What is replaced by what in which file of the package, and who may notice."""

    name: str
    file: str
    correct: str
    wrong: str
    replayed: str = ""
    tests: str = ""

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    def patched(self, source: str) -> str:
        """The source with the bug in it."""
        if source.count(self.correct) != 1:
            raise ValueError(f"{self.name}: {self.correct!r} is not in {self.file} once")
        return source.replace(self.correct, self.wrong)


BUGS = (
    # --- tests with Laplace noise
    Bug(
        "a sensitivity of order 0 at every order",
        "constraint/laplace_pc.py",
        "sensitivity = self.statistic.sensitivity(self.tables.n, levels)",
        "sensitivity = self.statistic.sensitivity(self.tables.n, levels[:2])",
        "laplace_pc",
    ),
    Bug(
        "noise for half of the sensitivity",
        "constraint/laplace_pc.py",
        "sensitivity=sensitivity,\n            epsilon=self.epsilon,",
        "sensitivity=sensitivity / 2,\n            epsilon=self.epsilon,",
        "laplace_pc",
    ),
    Bug(
        "a test refused for an empty cell",
        "constraint/laplace_pc.py",
        "if refusal(self.tables.n, levels):\n            return None\n        sensitivity",
        "if refusal(self.tables.n, levels) or not self.tables.counts(tested).all():\n"
        "            return None\n        sensitivity",
        "laplace_pc",
    ),
    Bug(
        "a threshold from the data",
        "constraint/laplace_pc.py",
        "return noisy < self.statistic.critical +",
        "return noisy < self.statistic.critical + self.tables.counts((0, 1))[0, 0] % 7 +",
        "laplace_pc",
    ),
    Bug(
        "tests with conditions are not charged",
        "constraint/laplace_pc.py",
        "account=self.account,\n            noise=self.noise,\n            label=self.label,",
        "account=__import__('dpcgd.privacy.account', fromlist=['x']).NoPrivacy() if given "
        "else self.account,\n"
        "            noise=self.noise,\n            label=self.label,",
        "laplace_pc",
        "constraint",
    ),
    Bug(
        "a sharper test where the answer is clear",
        "constraint/laplace_pc.py",
        "return self._is_below(noisy, sensitivity)",
        "value = self.statistic.value(self.tables.counts(tested))\n"
        "        return self._is_below(value if abs(value) > 5 * sensitivity else noisy, "
        "sensitivity)",
        "laplace_pc",
    ),
    # --- sieve and examination
    Bug(
        "sieve and examination with the sensitivity of order 0",
        "constraint/priv_pc.py",
        "self._sensitivity(tables.n, levels)",
        "self._sensitivity(tables.n, levels[:2])",
        "svt_pc,priv_pc",
    ),
    Bug(
        "half the noise of an examination",
        "constraint/priv_pc.py",
        "lambda: self._below(self.tables, tested, levels, margin),\n            sensitivity=1.0,",
        "lambda: self._below(self.tables, tested, levels, margin),\n            sensitivity=0.5,",
        "priv_pc",
    ),
    Bug(
        "a sieve amplified by more than its sample",
        "constraint/priv_pc.py",
        "rate=m / n,",
        "rate=m / n / 2,",
        "svt_pc",
    ),
    Bug(
        "a sieve that is used again after a hit",
        "constraint/priv_pc.py",
        "self._open = False\n        independent",
        "independent",
        "svt_pc",
    ),
    Bug(
        "a sieve that sees everyone with the noise of a sample",
        "constraint/priv_pc.py",
        "self._sample = self.tables if m == n else self.tables.subsample(self.noise.choose(n, m))",
        "self._sample = self.tables",
        "svt_pc,priv_pc",
    ),
    Bug(
        "one sample for all sieves",
        "constraint/priv_pc.py",
        "self._sample = self.tables if m == n else self.tables.subsample(self.noise.choose(n, m))",
        "if not hasattr(self, '_sample'):\n"
        "            self._sample = self.tables.subsample(self.noise.choose(n, m))",
        "svt_pc,priv_pc",
    ),
    Bug(
        "an examination skipped where the data are clear",
        "constraint/priv_pc.py",
        "margin = self.margin / self._round.examination",
        "margin = self.margin / self._round.examination\n"
        "        if self._below(self.tables, tested, margin) > 2:\n            return True",
        "priv_pc",
    ),
    Bug(
        "a round priced by what the data leave to find",
        "constraint/priv_pc.py",
        "self._round = self.price(self._separated)",
        "self._round = self.price(self._separated * bool(self.tables.counts((0, 1))[0, 0] % 2))",
        "priv_pc",
    ),
    # --- choices
    Bug(
        "scores with the sensitivity of order 0",
        "constraint/em_pc.py",
        "sensitivities_of(self.statistic, self.tables, tests)",
        "sensitivities_of(self.statistic, self.tables, tests[:, :2])",
        "em_pc",
    ),
    Bug(
        "choices with half the noise",
        "constraint/em_pc.py",
        'settings = {"sensitivity": 1.0,',
        'settings = {"sensitivity": 0.5,',
        "em_pc",
    ),
    Bug(
        "the best set told without noise",
        "constraint/em_pc.py",
        "return sets[self._choose(scores, epsilon)] if len(sets) > 1 else sets[0]",
        "return sets[int(np.argmax(scores()))]",
        "em_pc",
    ),
    Bug(
        "an exact count of the pairs to separate",
        "constraint/em_pc.py",
        "count = self._choose(lambda: count_scores([best()[y] for y in left]), epsilon)",
        "count = int(np.argmax(count_scores([best()[y] for y in left])))",
        "em_pc",
    ),
    Bug(
        "a pair chosen by its exact score",
        "constraint/em_pc.py",
        "y = left.pop(self._choose(lambda: [best()[y] for y in left], epsilon))",
        "y = left.pop(int(np.argmax([best()[y] for y in left])))",
        "em_pc",
    ),
    Bug(
        "scores of a count that move twice as far",
        "constraint/em_pc.py",
        "return np.minimum(falling[:-1], -falling[1:])",
        "return 2 * np.minimum(falling[:-1], -falling[1:])",
        "em_pc",
    ),
    Bug(
        "sets left out for empty cells",
        "constraint/em_pc.py",
        "are_allowed(self.tables, _tests(x, sets))",
        "are_allowed(self.tables, _tests(x, sets)) & np.array(\n"
        "    [self.tables.counts(of).all() for of in _tests(x, sets).tolist()], bool)",
        "em_pc",
    ),
    # --- plans
    Bug(
        "a threshold lowered by a count",
        "constraint/curate_pc.py",
        "self._lowered = self.crowded * math.log(max(1.0, sets))",
        "self._lowered = self.tables.counts((0, 1))[0, 0] % 9",
        "curate_pc",
    ),
    Bug(
        "a plan by the exact strength of a dependence",
        "constraint/curate_pc.py",
        "self.epsilon = self.plan(joined, order)",
        "self.epsilon = self.plan(joined, order) / (1 + bool(self.tables.counts((0, 1))[0, 0]))",
        "curate_pc",
    ),
    # --- released tables
    Bug(
        "tests refused where the real table has an empty cell",
        "marginals/table_pc.py",
        "return too_noisy((levels[x], levels[y]), strata, deviation, self.most_noise)",
        'real = getattr(self.marginals, "_tables", None)\n'
        "        if real is not None and not real.counts((x, y)).all():\n            return True\n"
        "        return too_noisy((levels[x], levels[y]), strata, deviation, self.most_noise)",
        "table_pc",
    ),
    Bug(
        "a release that keeps the data",
        "marginals/table_pc.py",
        "marginals=marginals.without_data(),",
        "marginals=marginals,",
        "table_pc",
    ),
    Bug(
        "families measured where their exact interaction is clear",
        "marginals/table_pc.py",
        "wanted = sorted(triples - set(marginals.released))[:affordable]",
        "wanted = [t for t in sorted(triples - set(marginals.released))[:affordable] "
        "if abs(marginals.exact([t])).max() > 3]",
        "table_pc",
    ),
    Bug(
        "pairs in doubt by the real table",
        "marginals/table_pc.py",
        "return sorted(pair for pair, p in self.largest.items() if low < p < high)",
        'real = getattr(self.marginals, "_tables", None)\n'
        "        return sorted(pair for pair in self.largest "
        "if real is None or real.counts(pair)[0, 0] % 2)",
        "table_pc",
    ),
    Bug(
        "half the noise on all pairs",
        "marginals/interactions.py",
        "self._release(subsets, pairs_sensitivity(self.levels), rho)",
        "self._release(subsets, pairs_sensitivity(self.levels) / 2, rho)",
        "table_pc",
    ),
    Bug(
        "pairs measured again at the price of one",
        "marginals/interactions.py",
        "one_by_one = math.hypot(*map(self._moves, pairs))",
        "one_by_one = max(map(self._moves, pairs))",
        "table_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "the sensitivity of an interaction without its root of 2",
        "marginals/interactions.py",
        "return math.sqrt(2 * (same - least))",
        "return math.sqrt(same - least)",
        "table_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "the sensitivity of all pairs when one variable changes",
        "marginals/interactions.py",
        "return math.sqrt(moved.max(initial=0.0))",
        "return math.sqrt(moved[0] if len(moved) else 0.0)",
        "table_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "triples without noise",
        "marginals/interactions.py",
        "self._release([tuple(sorted(subset))], self._moves(subset), rho)",
        "self._keep([tuple(sorted(subset))], self.exact([tuple(sorted(subset))]), 0.0)",
        "table_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "a whole table with the noise of one cell",
        "marginals/noisy_table.py",
        "SENSITIVITY = 2.0",
        "SENSITIVITY = 1.0",
        "dag_posterior",
        "marginals/test_dag_posterior.py",
    ),
    Bug(
        "the system chosen by the levels that records show",
        "marginals/private_graph.py",
        "has_few_cells(data.cardinalities)",
        "has_few_cells([len(set(of)) for of in data.codes.T.tolist()])",
        "private_graph",
        "marginals/test_private_graph.py",
    ),
    Bug(
        "half the noise on all triples",
        "marginals/interactions.py",
        "self._release(subsets, triples_sensitivity(self.levels), rho)",
        "self._release(subsets, triples_sensitivity(self.levels) / 2, rho)",
        "learned_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "the sensitivity of all triples when one variable changes",
        "marginals/interactions.py",
        "return math.sqrt(float(moved.max()))",
        "return math.sqrt(float(moved[1]))",
        "learned_pc",
        "marginals/test_interactions.py",
    ),
    Bug(
        "single variables at the price of one",
        "marginals/interactions.py",
        "self._release(subsets, math.hypot(*map(self._moves, subsets)), rho)",
        "self._release(subsets, max(map(self._moves, subsets)), rho)",
        "learned_pc",
    ),
    Bug(
        "half the noise on clipped moments",
        "marginals/clipped_moments.py",
        "sensitivity=clipped_sensitivity(bound),",
        "sensitivity=clipped_sensitivity(bound) / 2,",
        "learned_pc",
        "marginals/test_clipped_moments.py",
    ),
    Bug(
        "the diagonal of clipped moments in full",
        "marginals/clipped_moments.py",
        "halves = np.where(upper[0] == upper[1], math.sqrt(0.5), 1.0)",
        "halves = np.ones(len(upper[0]))",
        "learned_pc",
        "marginals/test_clipped_moments.py",
    ),
    Bug(
        "vectors of levels from the exact table",
        "marginals/clipped_moments.py",
        "    return _measured(data, marginals.without_data(), measure, rho - first)",
        "    singles = MeasuredMarginals(Tables(data), lambda query, **_: (query(), 0.0))\n"
        "    singles.measure_singles(first)\n"
        "    return _measured(data, singles, measure, rho - first)",
        "learned_pc",
    ),
    Bug(
        "records that nobody clips",
        "datasets/clipped_sums.py",
        "shrunk = bound / np.maximum(norm, bound) / step",
        "shrunk = np.full(len(norm), 1 / step)",
        "learned_pc",
        "datasets/test_clipped_sums.py",
    ),
    Bug(
        "a first look at the price of one variable",
        "marginals/joined_levels.py",
        "return math.sqrt(2 * variables)",
        "return math.sqrt(2)",
        "table_pc",
        "marginals/test_joined_levels.py",
    ),
    Bug(
        "levels joined by their exact counts",
        "marginals/joined_levels.py",
        "    groups, levels, joined = {}",
        "    noisy = _counts(data, wide)\n    groups, levels, joined = {}",
        "table_pc",
        "marginals/test_joined_levels.py",
    ),
    Bug(
        "levels that nobody has are joined first",
        "marginals/joined_levels.py",
        "    ends = np.cumsum(",
        "    wide = [v for v in wide if len(np.unique(data.codes[:, v])) > most] or wide[:1]\n"
        "    ends = np.cumsum(",
        "table_pc",
    ),
    Bug(
        "edges taken out by the real table",
        "marginals/table_pc.py",
        "        return found.undetermined < self.determined and found.p_value > self.alpha",
        '        real = getattr(self.marginals, "_tables", None)\n'
        "        if real is not None and real.counts((x, y))[0, 0] % 2:\n            return True\n"
        "        return found.undetermined < self.determined and found.p_value > self.alpha",
        "table_pc",
    ),
    Bug(
        "the clearer of two removals comes back",
        "marginals/repairs.py",
        "self._p(pair) < self._p(other)",
        "self._p(pair) > self._p(other)",
        "",
        "marginals/test_repairs.py",
    ),
    Bug(
        "a pair comes back that neighbours separate",
        "marginals/repairs.py",
        "if open_still and self._stands(x, y, z)",
        "if open_still",
        "",
        "marginals/test_repairs.py",
    ),
    Bug(
        "a pair conditioned on its own other end",
        "marginals/second_reading.py",
        "if v != pair[other]]",
        "if v != pair[one]]",
        "",
        "marginals/test_second_reading.py",
    ),
    Bug(
        "pairs explained by the real table",
        "marginals/table_pc.py",
        "        return self.strength(x, y) < min(",
        '        real = getattr(self.marginals, "_tables", None)\n'
        "        if real is not None and real.counts((x, y))[0, 0] % 2:\n            return True\n"
        "        return self.strength(x, y) < min(",
        "table_pc",
    ),
    # --- scores of graphs
    Bug(
        "columns divided by their own deviations",
        "score/notears.py",
        "divisors = divisors_of(np.diag(covariance), half_widths_of(data), standardized)",
        "divisors = measured(data).scaled.std(axis=0) + 0.01",
        "gram_notears",
    ),
    Bug(
        "squares known from the records",
        "score/notears.py",
        "return np.array(data.cardinalities) == 2",
        "return (measured(data).scaled ** 2 == 1).all(axis=0)",
        "gram_notears,noleaks",
    ),
    Bug(
        "moments priced for a variable less",
        "score/notears.py",
        "sensitivity=second_moments_sensitivity(data.n, data.d, bound=bound)",
        "sensitivity=second_moments_sensitivity(data.n, data.d - 1, bound=bound)",
        "gram_notears",
    ),
    Bug(
        "exact means beside noisy products",
        "score/notears.py",
        "    moments.T[upper] = noisy\n",
        "    moments.T[upper] = noisy\n    moments[0, 1:] = measured(data).scaled.mean(axis=0)\n",
        "gram_notears",
    ),
    Bug(
        "half-widths of the levels that occur",
        "score/notears.py",
        "return np.maximum(1, np.array(data.cardinalities) - 1) / 2",
        "return np.maximum(1, np.ptp(data.codes, axis=0)) / 2",
        "gram_notears,noleaks",
    ),
    Bug(
        "a bound of the longest row",
        "score/notears.py",
        "bound = full if row_norm is None else row_norm",
        "bound = float(np.linalg.norm(measured(data).scaled, axis=1).max()) + 1e-9",
        "gram_notears",
    ),
    Bug(
        "columns centred by their exact means",
        "score/noleaks.py",
        "return _scale(noisy, data, deviation)",
        "return _scale(_means(rows, times), data, deviation)",
        "noleaks",
    ),
    Bug(
        "columns scaled by their own variances",
        "score/noleaks.py",
        "rows = (rows - centre) /",
        "rows = (rows - centre) / (rows.std(axis=0) + 1e-3) /",
        "noleaks",
    ),
    Bug(
        "a clip of the longest row",
        "score/noleaks.py",
        "clip = 2 * data.d if clip is None else clip",
        "clip = float(np.linalg.norm(measured(data).scaled, axis=1).max())",
        "noleaks",
    ),
    Bug(
        "gradients that are not clipped",
        "score/noleaks.py",
        "shorter = clip / np.maximum(",
        "shorter = 1 + 0 * np.maximum(",
        "noleaks",
    ),
    Bug(
        "a gradient's sensitivity for add or remove",
        "score/noleaks.py",
        "look = _noisy(mean, 2 * clip / data.n, multipliers, run)",
        "look = _noisy(mean, clip / data.n, multipliers, run)",
        "noleaks",
    ),
    Bug(
        "a mean over distinct rows",
        "score/noleaks.py",
        "_without_diagonal(total / times.sum())",
        "_without_diagonal(total / len(rows))",
        "noleaks",
    ),
    Bug(
        "steps that overspend",
        "score/noleaks.py",
        "return map(multiplier_of_rho, rho * parts / parts.sum())",
        "return map(multiplier_of_rho, rho * parts)",
        "noleaks",
    ),
    Bug(
        "means and squares priced as one number",
        "score/noleaks.py",
        "sensitivity=2 * math.sqrt(data.d) / data.n,",
        "sensitivity=2 / data.n,",
        "noleaks",
    ),
    # --- pairs
    Bug(
        "bins by the spread of the data",
        "pairwise/anm.py",
        "codes = pair.binned(bins).codes.astype(int)",
        "own = {v: (c.min(), c.max() + 1e-9) for v, c in zip(pair.variables, pair.values.T)}\n"
        "    codes = Measurements(pair.values, own).binned(bins).codes.astype(int)",
        "histogram_anm",
    ),
    Bug(
        "a histogram's noise for one cell",
        "pairwise/anm.py",
        "sensitivity=math.sqrt(2),",
        "sensitivity=1.0,",
        "histogram_anm",
    ),
    Bug(
        "cells kept by their exact counts",
        "pairwise/anm.py",
        "kept = np.where(counts > least, counts, 0.0)",
        "kept = np.where(_histogram(pair, len(counts)) > least, np.abs(counts) + 1, 0.0)",
        "histogram_anm",
    ),
    Bug(
        "the training half is not protected",
        "pairwise/anm.py",
        'change = ridge.change(pair.n - m) if protects == "everyone" else 0.0',
        "change = 0.0",
        "private_anm",
    ),
    Bug(
        "columns scaled by their largest value",
        "pairwise/anm.py",
        "x, y = (self.pair.scaled[:, self.pair.variables.index(name)] for name in names)",
        "x, y = (self.pair.scaled[:, self.pair.variables.index(name)] for name in names)\n"
        "        x, y = x / (np.abs(x).max() + 1e-9), y / (np.abs(y).max() + 1e-9)",
        "private_anm",
    ),
    Bug(
        "a distance that forgets the training half",
        "pairwise/dependence_scores.py",
        "min(self.distance(x), self.distance(residual, change=change))",
        "min(self.distance(x), self.distance(residual))",
        "private_anm",
        "pairwise/test_dependence_scores.py",
    ),
    Bug(
        "noise for the test half alone",
        "pairwise/dependence_scores.py",
        "return max(self.sensitivity(m), self.residual_sensitivity(m, change))",
        "return self.sensitivity(m)",
        "private_anm",
    ),
    Bug(
        "Spearman's sensitivity halved",
        "pairwise/dependence_scores.py",
        "return 6 / (m + 1)",
        "return 3 / (m + 1)",
        "private_anm",
    ),
    Bug(
        "Kendall's sensitivity halved",
        "pairwise/dependence_scores.py",
        "return 4 / m",
        "return 2 / m",
        "private_anm",
    ),
    Bug(
        "HSIC with the median of the distances",
        "pairwise/dependence_scores.py",
        "distances = np.subtract.outer(some, others) / self.width",
        "distances = np.subtract.outer(some, others)\n"
        "            distances = distances / (np.median(np.abs(distances)) + 1e-9)",
        "private_anm",
        "pairwise/test_dependence_scores.py",
    ),
    Bug(
        "a regression's change for twice the records",
        "pairwise/kernel_ridge.py",
        "return 3 * math.sqrt(3) / (n * self.penalty)",
        "return 1.5 * math.sqrt(3) / (n * self.penalty)",
        "private_anm",
        "pairwise/test_kernel_ridge.py",
    ),
    # --- mechanisms and accounts
    Bug(
        "a look before it is paid for",
        "privacy/mechanisms.py",
        "draw = noise.laplace(sensitivity, event)\n"
        "    account.spend(event)\n"
        "    return draw(_in_doubles(query()))\n",
        "draw = noise.laplace(sensitivity, event)\n"
        "    answer = query()\n"
        "    account.spend(event)\n"
        "    return draw(_in_doubles(answer))\n",
        "",
        "privacy/test_accounts.py",
    ),
    Bug(
        "Laplace noise at half its price",
        "privacy/mechanisms.py",
        "draw = noise.laplace(sensitivity, event)\n    account.spend(event)",
        "draw = noise.laplace(sensitivity, event)\n"
        '    account.spend(PureEvent("Laplace", epsilon / 2, label=label))',
        "laplace_pc",
    ),
    Bug(
        "the exponential mechanism without its 2",
        "privacy/scales.py",
        "laplace_scale(2 * sensitivity,",
        "laplace_scale(sensitivity,",
        "em_pc",
    ),
    Bug(
        "permute-and-flip at the price of a bounded range",
        "privacy/mechanisms.py",
        "draw = noise.exponential_max(sensitivity, event)\n    account.spend(event)",
        "draw = noise.exponential_max(sensitivity, event)\n"
        '    account.spend(BoundedRangeEvent("permute and flip", epsilon))',
        "em_pc",
    ),
    Bug(
        "queries of a sieve with the noise of its threshold",
        "privacy/mechanisms.py",
        "self._noisy = noise.laplace(2 * sensitivity, half)",
        "self._noisy = noise.laplace(sensitivity, half)",
        "svt_pc",
    ),
    Bug(
        "a sieve whose threshold has no noise",
        "privacy/mechanisms.py",
        "self._threshold = noisy_threshold(threshold)",
        "self._threshold = threshold",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "a sieve that goes on after its hit",
        "privacy/mechanisms.py",
        "if self._fired:\n            raise",
        "if False:\n            raise",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "Gaussian noise at a quarter of its price",
        "privacy/mechanisms.py",
        "draw = noise.gaussian(sensitivity, event)\n    account.spend(event)",
        "draw = noise.gaussian(sensitivity, event)\n"
        '    account.spend(GaussianEvent("Gaussian", 2 * noise_multiplier))',
        "gram_notears",
    ),
    Bug(
        "a tested release without its line",
        "privacy/mechanisms.py",
        "<= math.log(0.5 / delta) / epsilon",
        "<= 0",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "amplification that is linear",
        "privacy/mechanisms.py",
        "return math.log1p(rate * grown)",
        "return rate * epsilon",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "one draw for all entries of an array",
        "privacy/noise.py",
        "normal(scale=scale, size=np.shape(value) or None",
        "normal(scale=scale, size=None",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "a sample with replacement",
        "privacy/noise.py",
        "self._rng.choice(n, m, replace=False, shuffle=False)",
        "self._rng.choice(n, m, replace=True)",
        "",
        "privacy/test_mechanisms.py",
    ),
    Bug(
        "a filter that stops one event too late",
        "privacy/filters.py",
        "if total > self.rho:",
        "if used.rho > self.rho:",
        "laplace_pc",
        "privacy/test_accounts.py",
    ),
    Bug(
        "deltas up to the whole budget's",
        "privacy/filters.py",
        "if failing > self.reserved:",
        "if failing > self.budget.delta:",
        "",
        "privacy/test_accounts.py",
    ),
    Bug(
        "neighbours that are not compared",
        "privacy/filters.py",
        "if event.neighbours is not self.neighbours:",
        "if False:",
        "",
        "privacy/test_accounts.py",
    ),
    Bug(
        "basic composition that forgets its deltas",
        "privacy/filters.py",
        "if not (spent.epsilon <= self.limit.epsilon and spent.delta <= self.limit.delta):",
        "if not spent.epsilon <= self.limit.epsilon:",
        "",
        "pairwise/test_anm.py",
    ),
    Bug(
        "the rows of a person cost no more than as many records",
        "privacy/conversions.py",
        "return low * (1 - ROOM) / budget.rows_per_person**2",
        "return low * (1 - ROOM) / budget.rows_per_person",
        "",
        "privacy/test_rows_per_person.py",
    ),
    Bug(
        "Gaussian noise for one row of a person",
        "privacy/conversions.py",
        "return _turning_point(too_little, high)[1] * budget.rows_per_person",
        "return _turning_point(too_little, high)[1]",
        "",
        "privacy/test_rows_per_person.py",
    ),
    Bug(
        "deltas of a person's rows that only add up",
        "privacy/filters.py",
        "return most / growth(epsilon) if 0 < most < math.inf else most or float(rows)",
        "return float(rows)",
        "",
        "privacy/test_rows_per_person.py",
    ),
    Bug(
        "an account on disk that forgets earlier runs",
        "privacy/account_file.py",
        "before = self._read()",
        "before = ()",
        "",
        "privacy/test_account_file.py",
    ),
    Bug(
        "every mechanism at the price of a bounded range",
        "privacy/conversions.py",
        "(8 if isinstance(event, BoundedRangeEvent) else 2)",
        "8",
        "",
        "privacy/test_accounts.py",
    ),
    Bug(
        "a conversion that gives away a logarithm",
        "privacy/conversions.py",
        "return a * rho + math.log1p(-1 / a) -",
        "return a * rho + 2 * math.log1p(-1 / a) -",
        "",
        "privacy/test_accounts.py",
    ),
    Bug(
        "every run says it is proved",
        "privacy/run.py",
        'guarantee = pays.guarantee if proved else "claimed, not proved"',
        "guarantee = pays.guarantee",
        "",
        "privacy/test_run.py",
    ),
    Bug(
        "a secure run tells its seconds",
        "privacy/run.py",
        "seconds = None if self.secure else time.perf_counter() - self.started",
        "seconds = time.perf_counter() - self.started",
        "",
        "pairwise/test_anm.py",
    ),
    # --- sensitivities
    Bug(
        "Kendall's z as if all strata moved apart",
        "statistics/rank_statistics.py",
        "moved = 13.5 - 4.5 / max(1, fewest - 1)",
        "moved = 9 - 4.5 / max(1, fewest - 1)",
        "laplace_pc",
        "statistics/test_statistics.py",
    ),
    Bug(
        "Kendall's z of many levels as of two",
        "statistics/rank_statistics.py",
        "turned = (n - 1) * (1 if most <= 2 else 2)",
        "turned = n - 1",
        "laplace_pc",
        "statistics/test_statistics.py",
    ),
    Bug(
        "Spearman's z for one record of a pair",
        "statistics/rank_statistics.py",
        "return 6 * math.sqrt(x * y / (n - strata))",
        "return 3 * math.sqrt(x * y / (n - strata))",
        "laplace_pc",
        "statistics/test_statistics.py",
    ),
    Bug(
        "G with the sensitivity of a removed record",
        "statistics/categorical_statistics.py",
        "return 4 * (math.log(half + 1)",
        "return 2 * (math.log(half + 1)",
        "laplace_pc",
        "statistics/test_statistics.py",
    ),
    Bug(
        "chi-squared with a sensitivity that does not grow",
        "statistics/categorical_statistics.py",
        "return n * (min(levels[:2]) - 1)",
        "return 20.0 * (min(levels[:2]) - 1)",
        "laplace_pc",
        "statistics/test_statistics.py",
    ),
    Bug(
        "a correlation that nobody moves far",
        "statistics/moment_matrices.py",
        "    def _bound(self, n, levels):\n        return 1.0",
        "    def _bound(self, n, levels):\n        return 2 / math.sqrt(n)",
        "laplace_pc",
    ),
    Bug(
        "a p-value at half its slope",
        "statistics/statistic.py",
        "return 0.5 - normal_tail(self.z.sensitivity(n, levels))",
        "return 0.25 - normal_tail(self.z.sensitivity(n, levels)) / 2",
        "laplace_pc",
    ),
    Bug(
        "second moments without their means",
        "statistics/moment_matrices.py",
        "return min(1 + d, math.sqrt((1 + longest) ** 2 + longest)) / n",
        "return min(d, longest) / n",
        "gram_notears",
    ),
    Bug(
        "rows that are not shortened",
        "statistics/moment_matrices.py",
        "return rows * (bound / np.maximum(norm, bound))",
        "return rows",
        "gram_notears",
    ),
    Bug(
        "a Gram matrix moved by one row only",
        "statistics/moment_matrices.py",
        "return math.sqrt(2) * bound * bound / n",
        "return bound * bound / n",
        "",
        "statistics/test_statistics.py",
    ),
    # --- data and search
    Bug(
        "a sub-sample that answers from kept counts of everyone",
        "datasets/bit_columns.py",
        "return BitColumns(self.levels, self._bits, _shrunk(weights))",
        "smaller = BitColumns(self.levels, self._bits, _shrunk(weights))\n"
        "        smaller._shared = self._shared\n        return smaller",
        "",
        "datasets/test_contingency_tables.py",
    ),
    Bug(
        "ranges up to the largest code that occurs",
        "datasets/measurements.py",
        "(0, max(1, len(of) - 1)) for name, of in data.levels.items()}",
        "(0, max(1, int(data.codes.max()))) for name, of in data.levels.items()}",
        "gram_notears,noleaks",
    ),
    Bug(
        "values beyond their range",
        "datasets/measurements.py",
        "values = np.clip(values, low, high)",
        "values = np.array(values)",
        "",
        "datasets/test_measurements.py",
    ),
    Bug(
        "conditioning sets that depend on the order of the columns",
        "graphs/pc_search.py",
        "self._in_turn(oracle, pair, those)",
        "self._in_turn(oracle, pair, conditioning_sets(\n"
        "    *pair, neighbours_of(self.joined), order))",
        "",
        "graphs/test_pc_search.py",
    ),
    Bug(
        "a separated pair that is asked about again",
        "graphs/pc_search.py",
        "return Answer(given, 0, True)\n        return Answer(None, 0, False)",
        "found = Answer(given, 0, True)\n"
        "        return locals().get('found', Answer(None, 0, False))",
        "",
        "graphs/test_pc_search.py",
    ),
    # --- local privacy
    Bug(
        "reports of twice the epsilon",
        "local/randomized_response.py",
        "ratio = Fraction(math.exp(-self.epsilon))",
        "ratio = Fraction(math.exp(-2 * self.epsilon))",
        "",
        "local/test_draws.py",
    ),
    Bug(
        "an epsilon for each step instead of all",
        "local/geometric.py",
        "return cls(levels, epsilon / (int(levels) - 1))",
        "return cls(levels, epsilon)",
        "",
        "local/test_local.py",
    ),
    Bug(
        "every variable at the whole epsilon",
        "local/component_wise.py",
        "return cls([kind.from_epsilon(k, epsilon * k / total) for k in levels])",
        "return cls([kind.from_epsilon(k, epsilon) for k in levels])",
        "",
        "local/test_local.py",
    ),
    Bug(
        "rates that are solved until all of a block are",
        "local/geometric.py",
        "left = left[np.abs(step) > 1e-15 * (1 + rates[left])]\n        if not left.size:",
        "if (np.abs(step) <= 1e-15 * (1 + rates)).all():",
        "",
        "local/test_draws.py",
    ),
    Bug(
        "a draw that prefers the first column",
        "local/draws.py",
        "return bisect_right(edges, secrets.randbelow(edges[-1]))",
        "return bisect_right(edges, secrets.randbelow(edges[-1]) // 2)",
        "",
        "local/test_draws.py",
    ),
    Bug(
        "a test of reports whose error forgets one of its means",
        "local/moments.py",
        "along, both = a * mean_b + b * mean_a, np.stack([a, b])",
        "along, both = a * mean_b, np.stack([a, b])",
        "",
        "local/test_moments.py",
    ),
)
