"""The project in numbers: lines of code, imports against the rule, theorems and code without links.

python scripts/house.py      # writes _build/results/house.json
"""

import ast
import os
import subprocess
import sys
import tempfile

import names
from chapters import ROOT, write_results
from reference import systems_without_theorem, theorems_without_code

PACKAGE = ROOT / "dpcgd"
MOST_LINES = {
    "dpcgd": 11_240,
    "book/tools": 3_580,
    "tests": 16_076,
    "benchmarks and scripts": 4_978,
}
"""What each part of the project may have."""
FLOORS = (
    ("datasets", "privacy"),
    ("statistics", "graphs"),
    ("constraint", "score", "pairwise", "local", "moments"),
    ("reading",),
    ("tables",),
)
"""A file imports from its own room and from floors below; on the first two, from its own too."""
ROOMS = {room: number for number, floor in enumerate(FLOORS) for room in floor}
"""From a room to its floor."""
SYSTEMS = 2


def is_up(room: str, used: str) -> bool:
    """Whether a file of this room that imports from that one looks up."""
    return ROOMS[used] > ROOMS[room]


def is_sideways(room: str, used: str) -> bool:
    """Whether it looks at another system's room."""
    return used != room and ROOMS[used] == ROOMS[room] == SYSTEMS


def imports(text: str):
    """Every module of the package that a text imports, wherever in it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpcgd":
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "dpcgd")


def rooms_used(text: str) -> set[str]:
    """The rooms that a text imports from."""
    return {module.split(".")[1] for module in imports(text) if "." in module}


def is_text(node: ast.AST) -> bool:
    """Whether it is a docstring, or a text that stands where one does."""
    constant = node.value if isinstance(node, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str)


def lines_of_code(text: str) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    without = set()
    for node in ast.walk(ast.parse(text)):
        if is_text(node):
            without.update(range(node.lineno, node.end_lineno + 1))
    held = (line.strip() for i, line in enumerate(text.splitlines(), 1) if i not in without)
    return sum(bool(line) and not line.startswith("#") for line in held)


def lines_in(*folders: str) -> int:
    """Lines of code in all files below these folders."""
    found = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return sum(lines_of_code(file.read_text()) for file in found)


FIRST_CALL = """
import time
import numpy as np
from dpcgd import load, private_graph
data = load({network!r}, n=100_000, rng=np.random.default_rng(0))
start = time.process_time()
private_graph(data, epsilon=1.0, rng=np.random.default_rng(1))
print(time.process_time() - start)
"""


def cold_seconds(network: str) -> float:
    """Processor seconds of the first private graph in a fresh process without compiled code."""
    command = [sys.executable, "-c", FIRST_CALL.format(network=network)]
    with tempfile.TemporaryDirectory() as empty:
        settings = os.environ | {"NUMBA_CACHE_DIR": empty}
        return round(float(subprocess.check_output(command, env=settings)), 2)


def house() -> dict:
    """What is written to the file."""
    texts = [(room, file.read_text()) for room in ROOMS for file in (PACKAGE / room).glob("*.py")]
    used = [(room, other) for room, text in texts for other in rooms_used(text)]
    return {
        "rooms": {room: lines_in(f"dpcgd/{room}") for room in ROOMS},
        "parts": {part: lines_in(*part.split(" and ")) for part in MOST_LINES},
        "imports_up": sum(is_up(*pair) for pair in used),
        "imports_sideways": sum(is_sideways(*pair) for pair in used),
        "names_to_change": len(names.to_change()),
        "cold_seconds": {network: cold_seconds(network) for network in ("asia", "sachs")},
        "theorems_without_code": len(theorems_without_code()),
        "systems_without_theorem": len(systems_without_theorem()),
    }


def main():
    found = house()
    file = write_results("house", found)
    for room, lines in found["rooms"].items():
        print(f"  {room:<22}{lines:>7,}")
    for part, lines in found["parts"].items():
        print(f"{part:<24}{lines:>7,} lines of {MOST_LINES[part]:,}")
    for network, seconds in found["cold_seconds"].items():
        print(f"first private graph of {network}: {seconds} processor seconds")
    if wrong := [name for name, count in found.items() if isinstance(count, int) and count]:
        sys.exit(f"not in order: {', '.join(wrong)}; see {file}")


if __name__ == "__main__":
    main()
