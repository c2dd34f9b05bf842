"""Systems that release marginal tables once and learn from them."""
