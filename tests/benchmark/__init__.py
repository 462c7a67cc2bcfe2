"""`make bench`: how long computing takes and how much memory, beside the plain way, other tools and the arithmetic.

A section is a module with a function that returns what it measured; `__main__.py` runs them and keeps what they
return in results/bench.json, from which the site makes its page about speed.
"""
