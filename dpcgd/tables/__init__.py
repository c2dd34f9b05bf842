"""The calls for a table: plan, rehearse, measure, release."""
