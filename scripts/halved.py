"""Every chapter with half of its noise: its assertions or its golden values have to notice.

python scripts/halved.py [chapters]     # as 06 or 06,07; all otherwise

Results are in _build/results/halved.json: chapter -> what noticed.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import golden
from chapters import BUILD, Home, Run, chapters, write_results

PLANTED = '''
"""Half of the noise of every mechanism; channels at twice their epsilon."""

import dpcgd.privacy.noise
from dpcgd_book.attacks.narrow_noise import NarrowNoise
from dpcgd.local.draws import SeededDraws

dpcgd.privacy.noise.SeededNoise = NarrowNoise


def sharpened(draw):
    return lambda self, weights, *row: draw(self, weights**2, *row)


for name in ("each", "from_rows"):
    setattr(SeededDraws, name, sharpened(getattr(SeededDraws, name)))
SeededDraws.happens = lambda self, chance, n: self._rng.random(n) < float(chance) ** 0.5
'''


def noticed(run: Run, path: Path) -> tuple[str, str]:
    """The chapter, and what noticed; empty if nothing did."""
    outcome = run.execute(path)
    if outcome.error:
        return path.stem, outcome.error.splitlines()[0]
    off = golden.off(golden.of(path.stem), json.loads(run.home.result(path).read_text()))
    return path.stem, f"{len(off)} golden values, first {off[0]}" if off else ""


def main(names: str = ""):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    run = Run(Home(BUILD / "halved"), "quick", environment, planted=PLANTED)
    run.compile_once()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(pool.map(lambda path: noticed(run, path), chapters(names)))
    write_results("halved", found)
    lines = [f"{chapter:<40}{what or 'NOTHING'}" for chapter, what in found.items()]
    print("\nWith half of the noise:", *lines, sep="\n")
    if missed := [chapter for chapter, what in found.items() if not what]:
        sys.exit(f"\nnothing notices in {', '.join(missed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
