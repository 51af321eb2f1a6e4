"""Faster ways to the same numbers, used above a size only; a verdict names them where it rests on
them. Whoever wants to believe small proofs does not read this folder."""
