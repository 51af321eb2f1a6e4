"""The decisions of the searches, written once: a search asks, and is told.

A function here looks at a state, decides, and says what to ask next (`questions`); the state then
holds the point, and gets the answer before the next function is called. Nothing here asks by itself
and nothing here is arithmetic on vectors: those are methods of the state. So the same functions run
interpreted, over the objects of `solvers.auto`, and compiled by Numba, over the records of
`solvers.compiled`. Whatever is written here must be in the part of Python that Numba knows.
"""
