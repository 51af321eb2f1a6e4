"""Geometry, random streams, the min-norm point and rigorous floating point."""
