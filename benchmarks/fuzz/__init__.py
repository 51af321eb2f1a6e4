"""Damaged and forged files against everything that reads files."""
