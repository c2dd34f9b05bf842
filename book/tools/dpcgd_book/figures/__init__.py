"""The figures of the chapters, a module a chapter."""
