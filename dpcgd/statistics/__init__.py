"""Test statistics with proved sensitivities, and the attack on those proofs."""
