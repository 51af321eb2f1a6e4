"""A minimum on a ball, in a box, or everywhere: decided by curvature."""
