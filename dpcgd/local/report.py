"""What everybody reports: a data set through a local mechanism."""

from numpy.random import Generator

from dpcgd.datasets.dataset import Dataset
from dpcgd.local.component_wise import LocalMechanism
from dpcgd.privacy.run import check_data

__all__ = ["report"]


def report(
    data: Dataset, mechanism: LocalMechanism, *, rng: Generator | None = None, secure: bool = False
) -> Dataset:
    """What everybody in a data set would report.

    Parameters
    ----------
    data : Dataset
    mechanism : LocalMechanism
        Over the public levels of the data.
    rng : numpy.random.Generator
        Seeded reports, for experiments: in use each person draws their own randomness.
    secure : bool
        Exact draws from the operating system's randomness, without a seed, for real reports: what
        there is unless `rng` is given.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the mechanism is for other levels, a variable is a number with a range, or the source of
        randomness is unusable.

    Privacy
    -------
    ``mechanism.epsilon``-local privacy for everybody who reports once; m times that for m reports.
    For secure reports this holds of what is really drawn, to within
    :data:`~dpcgd.local.draws.SLACK` (for each variable of a component-wise mechanism):
    :class:`~dpcgd.local.draws.SecureDraws`. The level of each mechanism is proved in chapter 10,
    :prf:ref:`thm-local-krr`, :prf:ref:`thm-local-geometric` and :prf:ref:`thm-local-composition`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcgd.local.component_wise import ComponentWise
    >>> from dpcgd.local.randomized_response import RandomizedResponse
    >>> data = Dataset([[0, 2], [1, 1]], {"a": ["0", "1"], "b": ["0", "1", "2"]})
    >>> mechanism = ComponentWise.from_epsilon(RandomizedResponse, data.cardinalities, 10.0)
    >>> report(data, mechanism, rng=np.random.default_rng(0)).codes.tolist()
    [[0, 2], [1, 1]]
    """
    check_data(data, numbers=False, records=True)
    if mechanism.levels != data.cardinalities:
        raise ValueError(f"a mechanism for {mechanism.levels}; make it from data.cardinalities")
    codes = mechanism.sample(data.codes, rng=rng, secure=secure)
    return Dataset(codes, data.levels, data.truth, data.name, data.ordered, data.missing)
