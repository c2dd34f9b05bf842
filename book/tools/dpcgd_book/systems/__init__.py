"""Systems that only re-runs and the table of all systems need."""
