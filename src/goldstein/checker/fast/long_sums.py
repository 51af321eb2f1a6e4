"""Entries of a matrix times a long vector, exactly, without an integer per term."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from goldstein.checker.arrays import Indices
from goldstein.checker.exact import Exact
from goldstein.checker.fast.exact_vector import ExactVector
from goldstein.checker.nodes import Sums

#: With fewer terms than this, on average, Python's integers are as fast.
LONG = 64


def pays(node: Sums) -> bool:
    """Are the sums long enough?"""
    return node.numbers.size >= LONG * max(1, node.size)


def forward(node: Sums, places: Indices, ends: Sequence[Any]) -> list[Any]:
    """Return the node's series along a line: sums of numbers times entries of its ends."""
    out = []
    for end in ends:
        vector = ExactVector(end)
        spans = pairwise(node.ends.tolist())
        sums = [vector.dot(places[a:b], node.numbers[a:b]) for a, b in spans]
        out.append(Exact.of(sums))
    return node.finished(out)
