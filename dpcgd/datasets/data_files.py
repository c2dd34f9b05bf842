"""Where the data files of the book lie."""

from pathlib import Path

__all__ = ["data_folder"]


def data_folder() -> Path:
    """The data folder: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "data"
