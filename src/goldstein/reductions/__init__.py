"""Ways to search: what a problem is reduced to, and how an answer becomes a claim about it.

A reduction accepts problems, applies itself to a point (the function that a solver gets), inverts
answers and makes claims; `goldstein.reductions.base` drives them all.
"""
