"""What only the book needs; no part of the package."""
