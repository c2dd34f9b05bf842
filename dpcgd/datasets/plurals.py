"""What a class says of one and of many at once, and whether a subclass keeps the two together."""

__all__ = ["agree"]


def agree(kind: type, one: str, many: str) -> bool:
    """Whether what a class says of many was not left behind by a new definition for one.

    Parameters
    ----------
    kind : type
    one, many : str
        Names of what says the same of one and of many.

    Examples
    --------
    >>> class Both:
    ...     def value(self, x): ...
    ...     def values(self, xs): ...
    >>> class OneAnew(Both):
    ...     def value(self, x): ...
    >>> agree(Both, "value", "values"), agree(OneAnew, "value", "values")
    (True, False)
    """
    defining = (vars(of) for of in kind.__mro__ if {one, many} & vars(of).keys())
    return many in next(defining, {many})
