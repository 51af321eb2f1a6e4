"""One attack in each file: an `ATTACK`."""
