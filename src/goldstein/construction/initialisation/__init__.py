"""Better starts for searches, where the structure of a function shows them."""
