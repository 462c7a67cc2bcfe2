"""The oracle: a small random checkpoint of every family is run by PyTorch and transformers and compared, inside, with
what the family's table says: every matrix, the norm in front of it, what is added for positions, how it attends.

`python -m tests.checkpoint.oracle` (where PyTorch and transformers are) writes what agrees to results/oracle.json.
"""
