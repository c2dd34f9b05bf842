"""Reports: a data set after a local mechanism."""

from numpy.random import Generator

from dpcgd.datasets.dataset import Dataset
from dpcgd.local.component_wise import LocalMechanism
from dpcgd.privacy.run import check_data

__all__ = ["report"]


def report(
    data: Dataset, mechanism: LocalMechanism, *, rng: Generator | None = None, secure: bool = False
) -> Dataset:
    """Report every record of a data set by a local mechanism.

    Parameters
    ----------
    data : Dataset
    mechanism : LocalMechanism
        A mechanism for the public levels of the data.
    rng : numpy.random.Generator
        Seeded reports, for experiments; in practice each person draws their own randomness.
    secure : bool
        Exact draws from the operating system's randomness, without a seed, for real reports. This
        is the default unless `rng` is given.

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
    ``mechanism.epsilon``-local privacy for each person who reports once; m times as much for m
    reports. The draws of secure reports reach this up to :data:`~dpcgd.local.draws.SLACK` (for each
    variable of a component-wise mechanism): :class:`~dpcgd.local.draws.SecureDraws`. Chapter 10
    proves the epsilon of each mechanism, :prf:ref:`thm-local-krr`, :prf:ref:`thm-local-geometric`
    and :prf:ref:`thm-local-composition`.

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
