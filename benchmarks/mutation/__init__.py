"""The checker weakened on purpose, in one place after the other: some test must notice."""
