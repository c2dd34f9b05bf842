"""The figures of the chapters, a module for each kind."""
