"""Counts from a database: the records stay where they are, and the server counts them.

python examples/counts_from_a_database.py
"""

import duckdb  # any database that speaks SQL; this one lies in memory
import numpy as np

import dpcgd


class DatabaseCounts(dpcgd.Counts):
    """A table in a database, whose columns and levels are public."""

    def __init__(self, connection, table, levels):
        self.levels, self._connection, self._table = levels, connection, table
        ((self.n,),) = self._ask("SELECT count(*)")
        for name, of in levels.items():
            held = {value for (value,) in self._ask(f'SELECT DISTINCT "{name}"')}
            if not held <= set(of):
                raise ValueError(f"column {name!r} holds what is none of its levels; correct it")

    def counts(self, variables):
        """Records in each cell, one axis a variable."""
        names = [self.variables[v] for v in variables]
        columns = ", ".join(f'"{name}"' for name in names)
        found = np.zeros([len(self.levels[name]) for name in names], np.int64)
        for *values, count in self._ask(f"SELECT {columns}, count(*)", f"GROUP BY {columns}"):
            found[tuple(self.levels[n].index(v) for n, v in zip(names, values, strict=True))] = (
                count
            )
        return found

    def _ask(self, what, how=""):
        return self._connection.execute(f'{what} FROM "{self._table}" {how}').fetchall()


def main():
    """Put a survey into a database, and find its graph without taking it out."""
    data = dpcgd.load("survey", 50_000, rng=np.random.default_rng(0))
    columns = zip(data.levels.items(), data.codes.T, strict=True)
    survey = {name: np.array(of)[codes] for (name, of), codes in columns}
    with duckdb.connect() as connection:
        connection.register("columns", survey)
        connection.execute("CREATE TABLE people AS SELECT * FROM columns")
        table = DatabaseCounts(connection, "people", data.levels)
        print(dpcgd.table_pc(table, epsilon=1.0, rng=np.random.default_rng(1)).graph)


if __name__ == "__main__":
    main()
