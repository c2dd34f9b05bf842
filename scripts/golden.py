"""Hold the chapters' results against tests/golden, or refresh them and print what moved.

python scripts/golden.py        # runs the chapters in their quick profile and refreshes
"""

import json
import math
import sys
import tempfile
from pathlib import Path

from chapters import ROOT, execute_all

GOLDEN = ROOT / "tests" / "golden"
TOLERANCE = 1e-6
"""Relative, for results whose file says nothing else: seeded, so only rounding may move them."""


def moved(golden: dict, results: dict) -> list[str]:
    """One line for each result that is missing, new, or off by more than its tolerance."""
    lines = [f"{name}: not in the golden file" for name in results.keys() - golden.keys()]
    for name, entry in golden.items():
        if name not in results:
            lines.append(f"{name}: no longer recorded")
        else:
            tolerance = entry.get("tolerance", TOLERANCE)
            lines += _differences(name, entry["value"], results[name], tolerance)
    return sorted(lines)


def _differences(name, old, new, tolerance) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [
            d for key in old for d in _differences(f"{name}.{key}", old[key], new[key], tolerance)
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [d for i, (a, b) in pairs for d in _differences(f"{name}[{i}]", a, b, tolerance)]
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (old, new))
    same = math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance) if numbers else old == new
    return [] if same else [f"{name}: {old!r} -> {new!r}"]


def refresh(chapter: str, results: dict) -> list[str]:
    """Write the golden file, keeping tolerances; return what moved."""
    file = GOLDEN / f"{chapter}.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    lines = moved(old, results)
    kept = {name: old.get(name, {}) | {"value": value} for name, value in results.items()}
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return lines


def main():
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        for outcome in execute_all(Path(folder) / "executed", results, "quick"):
            if outcome.error:
                sys.exit(outcome.error)
            file = results / f"{outcome.chapter}.json"
            lines = refresh(outcome.chapter, json.loads(file.read_text()))
            print(f"{outcome.chapter}: {len(lines)} moved", *lines, sep="\n    ")


if __name__ == "__main__":
    main()
