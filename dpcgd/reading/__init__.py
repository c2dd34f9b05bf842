"""What is read from a release at no further cost: edges, arrows, a fitted network."""
