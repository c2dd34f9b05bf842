"""Privacy: events, conversions, accounts, noise, mechanisms, and how a run is opened."""
