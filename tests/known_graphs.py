"""All acyclic graphs of a few variables, and which of them data cannot tell apart."""

import itertools
import math
from collections import defaultdict

import networkx as nx
import numpy as np
from dpcgd_book.systems.tests_and_scores import BGe

NAMES = "abcd"


def all_dags(size):
    pairs = list(itertools.combinations(NAMES[:size], 2))
    for ways in itertools.product((0, 1, -1), repeat=len(pairs)):
        dag = nx.empty_graph(NAMES[:size], create_using=nx.DiGraph)
        dag.add_edges_from(pair[::way] for pair, way in zip(pairs, ways, strict=True) if way)
        if nx.is_directed_acyclic_graph(dag):
            yield dag


def colliders(dag):
    return frozenset(
        (frozenset((a, b)), c)
        for c in dag
        for a, b in itertools.combinations(dag.predecessors(c), 2)
        if not dag.has_edge(a, b) and not dag.has_edge(b, a)
    )


def equivalence_classes(size):
    classes = defaultdict(list)
    for dag in all_dags(size):
        classes[frozenset(map(frozenset, dag.edges)), colliders(dag)].append(dag)
    return list(classes.values())


def graph_score(score, dag):
    """The sum of the local scores of a DAG."""
    at = {name: i for i, name in enumerate(score.variables)}
    return sum(score.local(at[v], tuple(sorted(at[p] for p in dag.predecessors(v)))) for v in dag)


class BIC(BGe):
    """The Bayesian information criterion of a linear Gaussian model: another score to climb."""

    def local(self, child, parents):
        at = list(parents)
        across, among = self.covariance[child, at], self.covariance[np.ix_(at, at)]
        variance = self.covariance[child, child]
        left = variance - across @ np.linalg.lstsq(among, across)[0] if at else variance
        likelihood = -self.n / 2 * (math.log(2 * math.pi * max(left, 1e-15 * variance)) + 1)
        return float(likelihood - (len(at) + 1) / 2 * math.log(self.n))
