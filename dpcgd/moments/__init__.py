"""What is released at once: interactions of few variables, clipped moments, a whole table."""
