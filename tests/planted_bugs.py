"""Bugs planted in the syntax tree of one function each: something has to notice every one of them.

`BUGS` are all bugs, those of planted_functions.py too. A bug is looked for by replaying the systems
named with its place, then, if their runs agree, by the test files named there, except for tests
that hold a run against the numbers of a seed.
"""

from planted_functions import half_priced, times
from planting import Place

HALF, FIRST_TWO = "_ / 2", "_[:2]"
A_COUNT = "self.tables.counts((0, 1))[0, 0]"
UNLOCKED = "__import__('contextlib').nullcontext()"
LONGEST = "float(np.linalg.norm(data.scaled, axis=1).max()) + 1e-9"

# --- tests with Laplace noise

place = Place("constraint:LaplaceOracle.separates", "laplace_pc", "constraint")
place.edit("a sensitivity of order 0 at every order", "statistic.sensitivity(..., _)", FIRST_TWO)
place.edit("noise for half of the sensitivity", "laplace(sensitivity=_)", HALF)
place.edit("refused for an empty cell", "refusal(...)", "_ or not self.tables.counts((x, y)).all()")
wrong = "__import__('dpcgd.privacy.filters', fromlist=['x']).NoPrivacy() if given else _"
place.edit("tests with conditions are not charged", "laplace(account=_)", wrong)
place = Place("constraint:LaplaceOracle._is_below", "laplace_pc")
place.edit("a threshold from the data", "statistic.critical", f"_ + {A_COUNT} % 7")

# --- sieve and examination

place = Place("constraint:ThresholdOracle", "svt_pc,priv_pc")
place.edit("a sieve with the sensitivity of order 0", "_sensitivity(..., _)", FIRST_TWO)
place.edit("a sieve of everyone, priced as a sample", "tables.subsample(...)", "self.tables")
wrong = "getattr(self, '_sample', None) or _"
place.edit("one sample for all", "A if B else C.subsample(D)", wrong)
place = Place("constraint:ThresholdOracle", "svt_pc")
place.edit("a sieve amplified by more than its sample", "sieve(rate=_)", HALF)
place = Place("constraint:ThresholdOracle.separates", "svt_pc")
place.edit("a sieve that is used again after a hit", "_open = False", "pass")
place = Place("constraint:ThresholdOracle", "priv_pc")
place.edit("a round priced by what the data leave to find", "price(_)", f"_ * bool({A_COUNT} % 2)")
place = Place("constraint:SieveOracle._confirms", "priv_pc")
place.edit("half the noise of an examination", "laplace(sensitivity=_)", HALF)
wrong = "if self._below(self.tables, tested, levels, 0.0) > 2: return True"
place.edit("an examination skipped where the data are clear", "", wrong)

# --- choices

place = Place("constraint:ExponentialOracle", "em_pc")
place.edit("scores with the sensitivity of order 0", "sensitivity(_)", FIRST_TWO)
wrong = "_ or not self.tables.counts((x, y, *s)).all()"
place.edit("sets left out for empty cells", "refusal(...)", wrong)
place = Place("constraint:ExponentialOracle._choose", "em_pc")
place.edit("choices with half the noise", "1.0", "0.5")
place = Place("constraint:ExponentialOracle._which_set", "em_pc")
place.edit("the best set told without noise", "_choose(A)", "int(np.argmax(A()))")
place = Place("constraint:ExponentialOracle._decide", "em_pc")
pattern = "_choose(lambda: count_scores(A))"
place.edit("an exact count of pairs", pattern, "int(np.argmax(count_scores(A)))")
place.edit("a pair chosen by its exact score", "A.pop(_choose(B))", "A.pop(int(np.argmax((B)())))")
Place("constraint:count_scores", "em_pc").swap("scores of a count that move twice as far", times(2))

# --- plans

place = Place("constraint:CurateOracle.begin_order", "curate_pc")
place.edit("a threshold lowered by a count", "self._lowered = A", f"self._lowered = {A_COUNT} % 9")
place.edit("a plan by an exact count", "self.plan(...)", f"_ / (1 + bool({A_COUNT}))")

# --- released moments and tables

Place("tables:table_pc", "table_pc").edit("a release that keeps the data", "A.without_data()", "A")
place = Place("tables:_measure_families", "table_pc")
wrong = "[t for t in _ if abs(marginals.exact([t])).max() > 3]"
place.edit("families measured where their exact interaction is clear", "sorted(...)[:A]", wrong)
place = Place("tables:system_for", "private_graph", "tables/test_private_graph.py")
wrong = "[int((data.counts([v]) > 0).sum()) for v in range(data.d)]"
place.edit("the system chosen by the levels that records show", "has_few_cells(_)", wrong)
place = Place("moments:MeasuredMarginals.measure_pairs", "table_pc")
place.edit("half the noise on all pairs", "_release(..., _)", HALF)
place = Place("moments:MeasuredMarginals.measure_again", "table_pc", "moments/test_interactions.py")
place.edit("pairs measured again at the price of one", "hypot(*A)", "max(A)")
place = Place("moments:MeasuredMarginals.measure", "table_pc", "moments/test_interactions.py")
place.edit("triples without noise", "_release(A, ...)", "self._keep(A, self.exact(A), 0.0)")
place = Place("moments:interaction_sensitivity", "table_pc", "moments/test_interactions.py")
place.swap("the sensitivity of an interaction without its root of 2", times(0.5**0.5))
place = Place("moments:pairs_sensitivity", "table_pc", "moments/test_interactions.py")
place.edit("all pairs priced for one change", "A.max()", "A[0] if len(A) else 0.0")
place = Place("moments:SENSITIVITY", "dag_posterior", "tables/test_dag_posterior.py")
place.swap("a whole table with the noise of one cell", times(0.5))
place = Place("moments:_measured", "graph_from_moments", "moments/test_clipped_moments.py")
place.edit("half the noise on clipped moments", "measure(sensitivity=_)", HALF)
place.edit("the diagonal of moments in full", "np.where(A, ...)", "np.ones_like(A, dtype=float)")
place = Place("moments:measure_moments", "graph_from_moments")
exact = "measure_singles(A, lambda query, **rest: (query(), 0.0), D, E)[0]"
place.edit("vectors of levels from the exact table", "measure_singles(A, B, D, E)", f"{exact}, D")
wrong = "{v: own._replace(width=1 + int(data.counts([v])[0] > 9)) for v, own in _.items()}"
place.edit("entries by an exact count", "entries_carried(...)", wrong)
place = Place("datasets:clipped_sums", "graph_from_moments", "datasets/test_clipped_sums.py")
place.edit("records that nobody clips", "A / np.maximum(B, ...) / C", "np.full(len(B), 1 / C)")
place = Place("moments:_measured", "graph_from_moments", "moments/test_look_at_numbers.py")
wrong = "min(_, math.sqrt(data.clipped_sums(B, bound=9.0).diagonal().sum() / data.n) + 1e-9)"
place.edit("a bound from the exact lengths of records", "longest_kept(A, B, C, D)", wrong)
tests = "moments/test_look_at_numbers.py"
place = Place("moments:look_sensitivity", "graph_from_moments", tests)
place.swap("a look at numbers without its 2", times(0.5**0.5))
place = Place("moments:measure_singles", "graph_from_moments", tests)
place.edit("looks at the price of one variable", "look_sensitivity(_)", "1")
exact = "[counted.astype(float) for counted in C(D, E)]"
place.edit("later looks without noise", "look(partial(C, D, E), B)", f"({exact}, deviation)")
wrong = f"([np.random.default_rng(0).normal(x, deviation) for x in {exact}], deviation)"
place.edit("later looks that nobody pays for", "look(partial(C, D, E), B)", wrong)
place.edit("looks that are paid for and not counted", "halves, used = A, used + B", "halves = A")
wrong = """_
for v, own in pieces.items():
    empty = [p for p in own.open if not counts()[v][p[0] : p[0] + width].any()]
    own.closed += empty
    own.open = [p for p in own.open if p not in empty]"""
place.edit("pieces halved by their exact counts", "width //= 2", wrong)
wrong = """__import__("dataclasses").replace(_, shares=np.add.reduceat(
    counts()[v][:PARTS], _.starts) / max(1, counts()[v][:PARTS].sum()))"""
place.edit("histograms with exact shares", "own.histogram(...)", wrong)
place.edit("numbers counted before they are paid for", "", "data.counts([0])")
place.edit("exact shares of missing numbers", "first[v][2:]", "counts()[v][PARTS:]")
place = Place("moments:share_of_look", "graph_from_moments", "tables/test_tables_with_numbers.py")
place.swap("a look that leaves nothing for moments", times(3.5))
place = Place("moments:Histogram.errors", tests="tables/test_tables_with_numbers.py")
place.swap("means of numbers that are taken for exact", times(0.0))
place = Place("moments:number_vectors", tests=tests)
place.edit("noise of constant numbers stretched", "np.maximum(A, B)", "A")
place = Place("moments:join_levels", "table_pc", "moments/test_joined_levels.py")
place.edit("a first look at the price of one variable", "look_sensitivity(_)", "2**0.5")
place.edit("levels joined by their exact counts", "A, B = measure(lambda: C)", "_\nA = C")
wrong = "wide = [v for v in wide if (data.counts([v]) > 0).sum() > most] or wide[:1]\n_"
place.edit("levels that nobody has are joined first", "if not wide: ...", wrong)

# --- readings

place = Place("reading:_Repair._contradictions", tests="reading/test_repairs.py")
place.edit("the clearer of two removals comes back", "p_values[A] < B", "p_values[A] > B")
place = Place("reading:_Repair.bring_back", tests="reading/test_repairs.py")
place.edit("a pair comes back that neighbours separate", "A and _stands(...)", "A")
place = Place("reading:_given_neighbours", tests="reading/test_pair_features.py")
place.edit("a pair conditioned on its own other end", "A != B[C]", "True")

place = Place("reading:_Tested._noise", tests="reading/test_association.py")
place.edit("noise of a pair counted once for all its levels", "A**2 * np.eye(B)", "A**2 / B")
place = Place("reading:_Tested._regress", tests="reading/test_association.py")
place.edit("slopes of directions that are nothing but noise", "np.maximum(A, ...)", "A")
place = Place("reading:Adjusted.difference", tests="reading/test_effects.py")
place.edit("an effect with the wrong sign", "A - B", "B - A")
place = Place("reading:shares_of_sets", tests="reading/test_effects.py")
place.edit("zero where the cause comes first", "leads(A, y, x)", "leads(A, x, y)")
place = Place("reading:standardised", tests="reading/test_effects.py")
place.edit("half the noise of a table in an effect", "2 * A**2 * B / C", "_ / 4")
place = Place("reading:_turn", tests="reading/test_orientation.py")
place.edit("drawn arcs that close a cycle", "leads(parents, A, B)", "False")
place = Place("tables:TableOracle.measure_again", tests="tables/test_table_pc.py")
place.edit("tests kept of pairs measured again", "measured.isdisjoint(...)", "True")

# --- scores of graphs

place = Place("score:_fitted", "gram_notears")
place.edit("divided by deviations", "divisors_of(...)", "data.scaled.std(axis=0) + 0.01")
place = Place("score:squares_known", "gram_notears,noleaks")
place.edit("squares known from records", "A == 2", "(data.scaled**2 == 1).all(axis=0)")
place = Place("datasets:Dataset.half_widths", "gram_notears,noleaks")
wrong = "np.maximum(1, np.ptp(self.codes, axis=0)) / 2"
place.edit("half-widths of the levels that occur", "np.array(A)", wrong)
place = Place("score:released_moments", "gram_notears")
place.edit("moments priced for a variable less", "second_moments_sensitivity(..., _)", "_ - 1")
place.edit("exact means by products", "A.T[B] = C", "_\nA[0, 1:] = data.scaled.mean(axis=0)")
place = Place("score:gram_notears", "gram_notears")
place.edit("a bound of the longest row", "A if row_norm is None else B", LONGEST)
place = Place("score:_released_scale", "noleaks")
place.edit("means priced as one number", "gaussian_for_rho(sensitivity=_)", "_ / math.sqrt(data.d)")
place = Place("score/noleaks:", "noleaks")
place.edit("scaled by own variances", "A = (A - B) / C", "_\nA = A / (A.std(axis=0) + 1e-3)")
place = Place("score:noleaks", "noleaks")
place.edit("a clip of the longest row", "A if clip is None else B", LONGEST)
place.edit("a gradient's sensitivity for add or remove", "2 * clip / A", HALF)
place = Place("score:clipped_gradient", "noleaks")
place.edit("gradients that are not clipped", "clip / A", "1 + 0 * A")
place.edit("a mean over distinct rows", "times.sum()", "len(rows)")
Place("score:_for_shares", "noleaks").edit("steps that overspend", "A / B.sum()", "A")

# --- pairs

place = Place("pairwise:_histogram", "histogram_anm")
spread = "{v: (c.min() - 1e-9, c.max()) for v, c in zip(pair.variables, pair.scaled.T)}"
wrong = f"Dataset.of_numbers(pair.scaled, {spread}).binned(A)"
place.edit("bins by the spread of the data", "pair.binned(A)", wrong)
place = Place("pairwise:noisy_histogram", "histogram_anm")
place.edit("a histogram's noise for one cell", "gaussian(sensitivity=_)", "1.0")
place = Place("pairwise:histogram_anm", "histogram_anm")
wrong = "np.where(_histogram(pair, len(A)) > B, np.abs(A) + 1, 0.0)"
place.edit("cells kept by their exact counts", "np.where(A > B, ...)", wrong)
place = Place("pairwise:private_anm", "private_anm")
place.edit("the training half is not protected", "ridge.change(...)", "0.0")
place = Place("pairwise:_Look._columns", "private_anm")
place.edit("columns scaled by maxima", "self.pair.scaled", "_ / (np.abs(_).max(axis=0) + 1e-9)")
tests = "pairwise/test_dependence_scores.py"
place = Place("pairwise:Iqr.release", "private_anm", tests)
place.edit("a distance that forgets the training half", "distance(A, change=B)", "self.distance(A)")
place = Place("pairwise/dependence_scores:", "private_anm")
place.edit("noise for the test half alone", "max(A, residual_sensitivity(...))", "A")
for rank in ("Spearman", "Kendall"):
    place = Place(f"pairwise:{rank}.sensitivity", "private_anm")
    place.swap(f"{rank}'s sensitivity halved", times(0.5))
place = Place("pairwise:Ridge.change", "private_anm", "pairwise/test_kernel_ridge.py")
place.swap("a regression's change for twice the records", times(0.5))

# --- mechanisms

for mechanism, system in (("laplace", "laplace_pc"), ("gaussian", "gram_notears")):
    Place(f"privacy:{mechanism}", system).swap(f"{mechanism} noise at half its price", half_priced)
Place("privacy:permute_and_flip", "em_pc").swap("permute-and-flip at half its price", half_priced)
place = Place("privacy:selection_scale", "em_pc")
place.swap("the exponential mechanism without its 2", times(0.5))
place = Place("privacy:AboveThreshold.__init__", "svt_pc")
place.edit("queries of a sieve with the noise of its threshold", "2 * float(A)", "A")
tests = "privacy/test_mechanisms.py"
place = Place("privacy:AboveThreshold.__init__", tests=tests)
place.edit("a threshold without noise", "self._threshold = A", "self._threshold = threshold")
place = Place("privacy:AboveThreshold.above", tests=tests)
place.edit("a sieve that goes on after its hit", "if _fired: ...", "pass")
place.edit("a sieve that several threads ask at once", "PAYING", UNLOCKED)
place = Place("privacy:propose_test_release", tests=tests)
place.edit("a tested release without its line", "... <= _", "0")
place = Place("privacy:amplified", tests="privacy/test_conversions.py")
place.edit("amplification that is linear", "math.log1p(...)", "rate * epsilon")
place = Place("privacy:SeededNoise.choose", tests=tests)
place.edit("a sample with replacement", "choice(replace=_)", "True")

# --- accounts

tests = "privacy/test_rows_per_person.py"
place = Place("privacy:rho_of_budget", tests=tests)
place.edit("a person's rows as records", "A.rows_per_person**2", "A.rows_per_person")
place = Place("privacy:gaussian_multiplier", tests=tests)
place.edit("Gaussian noise for one row of a person", "A * budget.rows_per_person", "A")
place = Place("privacy:zcdp_rho", tests="privacy/test_accounts.py")
place.edit("every mechanism at the price of a bounded range", "8 if A else 2", "8")
place = Place("privacy:_converted", tests="privacy/test_accounts.py")
place.edit("a conversion that gives away a logarithm", "math.log1p(A)", "2 * _")
place = Place("privacy:_Enforced.spend", tests="privacy/test_accounts.py")
place.edit("threads that pay from one budget at once", "PAYING", UNLOCKED)
place = Place("datasets:as_doubles", tests="privacy/test_accounts.py")
place.edit("prices of narrow types", "float(A)", "A")
place = Place("privacy:takes_keywords", tests="privacy/test_run.py")
place.edit("settings of narrow types", "value.item()", "value")
place = Place("privacy:_Enforced.keep", tests="privacy/test_accounts.py")
place.edit("a share for rounding that adds to the budget", "if not 0 <= A < 1: ...", "pass")
place = Place("privacy:open_run", tests="privacy/test_run.py")
place.edit("every run says it is proved", "A if proved else B", "A")
place = Place("privacy:Run.receipt", tests="pairwise/test_anm.py")
place.edit("a secure run tells its seconds", "None if A else B", "B")

# --- sensitivities

tests = "statistics/test_statistics.py"
place = Place("statistics:KendallZ._bound", "laplace_pc", tests)
place.edit("Kendall's z as if all strata moved apart", "13.5", "9")
place.edit("Kendall's z of many levels as of two", "1 if A <= 2 else 2", "1")
place = Place("statistics:SpearmanZ._bound", "laplace_pc", tests)
place.edit("Spearman's z for one record of a pair", "6 * math.sqrt(...)", HALF)
place = Place("statistics:GTest._bound", "laplace_pc", tests)
place.swap("G with the sensitivity of a removed record", times(0.5))
place = Place("statistics:ChiSquared._bound", "laplace_pc", tests)
place.edit("chi-squared with a sensitivity that does not grow", "n * A", "20.0 * A")
place = Place("statistics:PartialCorrelation._bound", "laplace_pc")
place.edit("a correlation that nobody moves far", "1.0", "2 / math.sqrt(n)")
Place("statistics:UpperTail._bound", "laplace_pc").swap("a p-value at half its slope", times(0.5))
place = Place("statistics:second_moments_sensitivity", "gram_notears")
place.edit("second moments without their means", "min(1 + A, B)", "min(A, bound * bound)")
place = Place("statistics:_shortened", "gram_notears")
place.edit("rows that are not shortened", "rows * A", "rows")
place = Place("statistics:gram_sensitivity", tests=tests)
place.swap("a Gram matrix moved by one row only", times(0.5**0.5))

# --- data and search

place = Place("datasets:Dataset.scaled", "gram_notears,noleaks")
place.edit("ranges of codes that occur", "np.maximum(1, A)", "max(1, int(self.codes.max()))")
NUMBERS = {"tests": "datasets/test_numbers.py"}
place = Place("datasets:Dataset.scaled", **NUMBERS)
place.edit("numbers at the lower ends of their parts", "np.where(A, 0.5, 0.0)", "0.0")
place.edit("numbers used that may be missing", "check_values(self)", "None")
place = Place("datasets:Dataset.binned", **NUMBERS)
place.edit("a number on an edge in the lower bin", "(A + 1) * bins - 1", "A * bins")
place = Place("datasets:Variable.positions_of_numbers", **NUMBERS)
place.edit("numbers between parts in the lower one", "searchsorted(side=_)", "'left'")
place = Place("datasets:Parts.values", **NUMBERS)
place.edit("lower ends of parts in place of their middles", "A + 0.5", "A")
place = Place("datasets:clipped_sums", tests="datasets/test_clipped_sums.py")
place.edit("vectors rounded instead of cut", "np.trunc", "np.rint")
place.edit("vectors cut downwards instead of towards zero", "np.trunc", "np.floor")
place.edit("vectors in single precision", "np.hstack(A)", "_.astype(np.float32).astype(float)")
place = Place("graphs:_Skeleton.ask", tests="graphs/test_pc_search.py")
wrong = "conditioning_sets(x, y, neighbours_of(self.joined), order)"
place.edit("sets in the columns' order", "conditioning_sets(x, y, neighbours, order)", wrong)
wrong = "oracle.separates(x, y, given)\n_"
place.edit("a separated pair that is asked about again", "self.separated[A] = B", wrong)
place = Place("graphs:_added_up", tests="graphs/test_check_ledger.py")
wrong = "max((A * B for C in D), default=0.0)"
place.edit("the largest delta alone is checked", "math.fsum(A * B for C in D)", wrong)

# --- local privacy

place = Place("local/randomized_response:", tests="local/test_draws.py")
place.edit("reports of twice the epsilon", "Fraction(math.exp(_))", "2 * _")
place = Place("local:ClippedGeometric.from_epsilon", tests="local/test_local.py")
place.edit("an epsilon for each step instead of all", "epsilon / A", "epsilon")
place = Place("local:ComponentWise.from_epsilon", tests="local/test_local.py")
place.edit("every variable at the whole epsilon", "epsilon * A / B", "epsilon")
place = Place("local/geometric:", tests="local/test_draws.py")
place.edit("rates solved by the block", "A = A[B]", "A = A if (B).any() else A[:0]")
place = Place("local:pick", tests="local/test_draws.py")
place.edit("a draw that prefers the first column", "secrets.randbelow(A)", "_ // 2")
place = Place("local/moments:", tests="local/test_moments.py")
pattern = "A * mean_b + B * mean_a"
place.edit("a test of reports whose error forgets one of its means", pattern, "A * mean_b")

BUGS = (*Place.bugs,)
