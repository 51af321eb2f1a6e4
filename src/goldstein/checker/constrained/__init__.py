"""Claims about problems with bounds and constraints."""
