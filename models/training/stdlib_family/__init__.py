"""`stdlib-family`: one recipe trained ten times, with one thing changed each time."""
