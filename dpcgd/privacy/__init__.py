"""Privacy: events, conversions, accounts, noise, mechanisms, audits, and how a run is opened."""
