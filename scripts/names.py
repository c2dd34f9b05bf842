"""Names that say nothing: where a file of the package or of the book's tools has one.

python scripts/names.py
"""

import ast

from reference import ROOT

BANNED = {"of", "told", "how", "found", "at", "again", "one", "each"}
"""No variable, argument or attribute has one of these names."""
NAMING = {ast.arg: "arg", ast.ExceptHandler: "name", ast.Name: "id", ast.Attribute: "attr"}
"""Where nodes have their names."""


def banned_in(text: str) -> list[int]:
    """The lines in which a banned name is given to something."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if name_given(node) in BANNED]


def name_given(node: ast.AST) -> str | None:
    """The name that a node gives to a variable, an argument or an attribute, if it does."""
    stored = isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
    return getattr(node, NAMING.get(type(node), ""), None) if stored else None


def to_change() -> list[str]:
    """Where banned names are given, as file:line."""
    files = [file for part in ("dpcgd", "book/tools") for file in (ROOT / part).rglob("*.py")]
    lines = {file.relative_to(ROOT): banned_in(file.read_text()) for file in sorted(files)}
    return [f"{file}:{line}" for file, own in lines.items() for line in own]


if __name__ == "__main__":
    print(*to_change() or ["no banned name"], sep="\n")
