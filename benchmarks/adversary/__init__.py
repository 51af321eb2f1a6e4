"""Attacks on the library, each instance with the verdict it must get; see README.md."""
