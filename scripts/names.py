"""Names that say nothing, and the files that still have some: there may only be fewer.

python scripts/names.py           # how many there are, and where there are too many
python scripts/names.py --renew   # writes down how many there are now, after some were renamed
"""

import ast
import sys

from reference import ROOT

BANNED = {"of", "told", "how", "found", "at", "again", "one", "each"}
"""No variable, argument or attribute has one of these names."""
NAMING = {ast.arg: "arg", ast.ExceptHandler: "name", ast.Name: "id", ast.Attribute: "attr"}
"""Where nodes have their names."""
KEPT = ROOT / "scripts" / "names_to_change.txt"
"""How many each file may still have; a file that is not listed may have none."""


def banned_in(text: str) -> list[int]:
    """The lines in which a banned name is given to something."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if name_given(node) in BANNED]


def name_given(node: ast.AST) -> str | None:
    """The name that a node gives to a variable, an argument or an attribute, if it does."""
    stored = isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
    return getattr(node, NAMING.get(type(node), ""), None) if stored else None


def counts() -> dict[str, int]:
    """How many banned names each file of the package and of the book's tools has, if any."""
    files = [file for part in ("dpcgd", "book/tools") for file in (ROOT / part).rglob("*.py")]
    all_counts = {file.relative_to(ROOT).as_posix(): banned_in(file.read_text()) for file in files}
    return {file: len(lines) for file, lines in sorted(all_counts.items()) if lines}


def allowed() -> dict[str, int]:
    """How many each file may still have."""
    pairs = (line.rsplit(maxsplit=1) for line in KEPT.read_text().splitlines())
    return {file: int(count) for file, count in pairs}


def too_many() -> list[str]:
    """Files with more banned names than they may still have."""
    most = allowed()
    return [f"{file}: {n}" for file, n in counts().items() if n > most.get(file, 0)]


def main(option: str = ""):
    if option == "--renew":
        KEPT.write_text("".join(f"{file} {count}\n" for file, count in counts().items()))
    print(f"{sum(counts().values())} banned names in {len(counts())} files", *too_many(), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
