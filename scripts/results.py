"""Make the full results of the chapters anew: make results, or make results CHAPTER=05

Chapters run one after the other, each on all cores. A run on file is not made again, so that a
command that was killed goes on where it stopped. Prints what moved, and where all asserts of the
chapter hold puts the new tables into book/stored.
"""

import json
import shutil
import sys
import time

import numpy as np
import pandas as pd
from chapters import BUILD, ROOT, Home, chapters, execute_all
from dpcgd_book.results.stored import made_of, rows_on_file

MOVED = 3.0
"""Standard errors from which a cell is told."""


def cells(folder, name) -> pd.DataFrame:
    """Mean and standard error of every cell of a table; of the whole where rows name no cell."""
    about, rows = made_of(folder)[name], rows_on_file(folder, name)
    runs = rows.groupby(about["cell"] or np.zeros(len(rows)))[about["compare"]]
    return pd.DataFrame({"mean": runs.mean(), "error": runs.sem(), "runs": runs.count()})


def moved(old, new) -> list[str]:
    """Cells of a table whose mean is another, and what is in one of them only."""
    both = old.add_suffix("_old").join(new.add_suffix("_new"), how="outer")
    gone = both["mean_new"].isna() & both["mean_old"].notna()
    added = both["mean_old"].isna() & both["mean_new"].notna()
    error = np.hypot(both.error_old, both.error_new)
    apart = both.mean_new - both.mean_old
    other = both[(apart.abs() > 1e-9) & (apart.abs() >= MOVED * error)]
    lines = [f"    {i}: {r.mean_old:.3f} -> {r.mean_new:.3f}" for i, r in other.iterrows()]
    if gone.any() or added.any():
        lines.append(f"    {gone.sum()} cells are gone, {added.sum()} are new")
    return lines


def take(made, kept) -> None:
    """Say what moved and put the new tables in place of the old ones; other tables stay."""
    for file in sorted(made.glob("*.parquet")):
        known = (kept / file.name).exists()
        lines = moved(cells(kept, file.stem), cells(made, file.stem)) if known else ["    new"]
        print(f"  {made.name}, {file.stem}: {'' if lines else 'nothing moved'}", *lines, sep="\n")
    about = made_of(kept) | made_of(made)
    shutil.copytree(made, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("made.json"))
    (kept / "made.json").write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")


def main(names: str = ""):
    at = Home(BUILD / "full")
    for path in (path for path in chapters(names) if "FullResults(" in path.read_text()):
        made, started = at.results / "full" / path.stem, time.perf_counter()
        shutil.rmtree(made, ignore_errors=True)
        at.clear(path)
        (outcome,) = execute_all(at, "full", [path], DPCGD_RENEW="1")
        print(f"{path.stem}: {time.perf_counter() - started:.0f} s", flush=True)
        if outcome.error:
            sys.exit(f"{outcome.error}\nThe tables of before were left as they are")
        take(made, ROOT / "book" / "stored" / path.stem)


if __name__ == "__main__":
    main(*sys.argv[1:])
