"""Minimise a function with kinks, and get a proof of how stationary the answer is."""

from __future__ import annotations

__version__ = "0.1.0"
