"""Hold the chapters' results against tests/golden, or refresh them and print what moved.

python scripts/golden.py        # runs the chapters in their quick profile and refreshes
"""

import json
import math
import sys

from chapters import ROOT, execute_all, home

GOLDEN = ROOT / "tests" / "golden"
QUOTED = ROOT / "book" / "stored" / "17_which_one_should_i_use" / "quoted.json"
"""What chapter 17 quotes from others, by chapter and name."""
EXACT = 1e-12
"""Relative: counts and decisions that hang on no last digit, and means of them."""
NEW = {"tolerance": 1e-9, "why": "new: say here what it went through, or why it is exact"}


OTHERWISE = "otherwise"
"""In a tolerance that differs within a result: what holds for the keys that it does not name."""


def off(golden: dict, results: dict) -> list[str]:
    """One line for each result that is missing, new, or off by more than its tolerance."""
    lines = [f"{name}: not in the golden file" for name in results.keys() - golden.keys()]
    lines += [f"{name}: no longer recorded" for name in golden.keys() - results.keys()]
    for name in golden.keys() & results.keys():
        value, tolerance = golden[name]["value"], golden[name].get("tolerance", EXACT)
        lines += _differences(name, value, results[name], tolerance)
    return sorted(lines)


def moved(golden: dict, results: dict) -> list[str]:
    """The same at no tolerance: what another machine does differently at all."""
    return off({name: {"value": entry["value"]} for name, entry in golden.items()}, results)


def _differences(name, old, new, tolerance) -> list[str]:
    parts = []
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        parts = [(f"{name}.{key}", old[key], new[key]) for key in old]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        parts = [(f"{name}[{i}]", a, b) for i, (a, b) in enumerate(zip(old, new, strict=True))]
    if parts or old == new:
        return [line for part in parts for line in _differences(*part, tolerance)]
    if isinstance(tolerance, dict):
        named = (allowed for key, allowed in tolerance.items() if f".{key}" in name)
        tolerance = next(named, tolerance[OTHERWISE])
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (old, new))
    same = math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance) if numbers else old == new
    return [] if same else [f"{name}: {old!r} -> {new!r}"]


def of(chapter: str) -> dict:
    """What the golden file of a chapter says."""
    file = GOLDEN / f"{chapter}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def refresh(chapter: str, results: dict) -> list[str]:
    """Write the golden file, keeping tolerances; return what is off."""
    old = of(chapter)
    kept = {name: old.get(name, NEW) | {"value": value} for name, value in results.items()}
    (GOLDEN / f"{chapter}.json").write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return off(old, results)


def quoted() -> dict:
    """What chapter 17 quotes, as the golden files have it."""
    names = [name.split(".") for name in json.loads(QUOTED.read_text())]
    files = {chapter: next(GOLDEN.glob(f"{chapter}_*.json")).stem for chapter, _ in names}
    return {f"{chapter}.{name}": of(files[chapter])[name]["value"] for chapter, name in names}


def main():
    GOLDEN.mkdir(exist_ok=True)
    at = home("quick")
    for outcome in execute_all(at, "quick"):
        if outcome.error:
            sys.exit(outcome.error)
        results = json.loads((at.results / f"{outcome.chapter}.json").read_text())
        lines = refresh(outcome.chapter, results)
        print(f"{outcome.chapter}: {len(lines)} moved", *lines, sep="\n    ")
    QUOTED.write_text(json.dumps(quoted(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
