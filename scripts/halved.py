"""Every chapter with half of its noise: its assertions or its golden values have to notice.

python scripts/halved.py [chapters]     # as 06 or 06,07; all otherwise

Results are in _build/results/halved.json: chapter -> what noticed.
"""

import json
import sys

import golden
from chapters import BUILD, Home, Outcome, chapters, execute_all, write_results

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


HOME = Home(BUILD / "halved")


def noticed(outcome: Outcome) -> str:
    """What noticed in a chapter; empty if nothing did."""
    if outcome.error:
        return outcome.error.splitlines()[0]
    results = json.loads((HOME.results / f"{outcome.chapter}.json").read_text())
    off = golden.off(golden.of(outcome.chapter), results)
    return f"{len(off)} golden values, first {off[0]}" if off else ""


def main(names: str = ""):
    outcomes = execute_all(HOME, "quick", chapters(names), PLANTED)
    found = dict(sorted((outcome.chapter, noticed(outcome)) for outcome in outcomes))
    write_results("halved", found)
    lines = [f"{chapter:<40}{what or 'NOTHING'}" for chapter, what in found.items()]
    print("\nWith half of the noise:", *lines, sep="\n")
    if missed := [chapter for chapter, what in found.items() if not what]:
        sys.exit(f"\nnothing notices in {', '.join(missed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
