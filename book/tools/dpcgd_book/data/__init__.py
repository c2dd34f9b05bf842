"""Data of the chapters alone: pairs, samples with a known graph, the models that draw them."""
