"""What only the chapters use: charts, drawing, sweeps, results, planted mutants."""
