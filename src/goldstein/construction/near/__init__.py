"""From a point to a proof of near stationarity: a pivot, directions out of it, weights."""
