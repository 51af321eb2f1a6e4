"""Batches are cut, joined and recognised without losing or adding a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.oracles import data_mean as module
from goldstein.oracles.data_mean import BatchCache, Trees


def flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    return list(batch), tuple


TREES = Trees(flatten, np.concatenate, np.asarray)


def batch(begin: int, end: int) -> tuple[Any, ...]:
    rows = np.arange(begin, end)
    return np.stack([rows, rows**2], axis=1).astype(float), "a note", rows % 3


counts = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def cut(sizes: list[int]) -> list[tuple[Any, ...]]:
    edges = np.cumsum([0, *sizes])
    return [batch(a, b) for a, b in pairwise(edges)]


def assert_equal(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.integers(1, 30))
def test_halves_join_to_the_whole(count: int) -> None:
    whole = batch(0, count)
    parts = TREES.halves(whole)
    assert sum(map(TREES.samples, parts)) == count
    assert_equal(TREES.joined(parts), whole)


@settings(deadline=None)  # how long it takes says nothing
@given(counts, st.randoms())
def test_the_fingerprint_is_that_of_the_samples(sizes: list[int], random: Any) -> None:
    total = sum(sizes)
    whole = TREES.fingerprint(batch(0, total))
    parts = cut(sizes)
    random.shuffle(parts)
    assert sum(map(TREES.fingerprint, parts)) % 2**64 == whole
    assert TREES.fingerprint(batch(1, total + 1)) != whole
    twice = TREES.joined([batch(0, total), batch(0, 1)])
    assert TREES.fingerprint(twice) != whole


@given(counts, st.booleans(), st.sampled_from([0, 60, 10**6]))
def test_what_is_kept_are_all_samples_or_nothing(sizes: list[int], join: bool, room: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "JOINED_NUMBERS", 90)
        patch.setattr(module, "KEPT_BYTES", 24 * room)
        kept = BatchCache(TREES, TREES.numbers if join else lambda _: math.inf)
        for part in cut(sizes):
            kept.add(part)
            part[0][:] = -1.0  # the loader's memory is its own
    found = kept.all()
    if sum(sizes) > room:
        assert found is None
        return
    assert found is not None
    assert_equal(TREES.joined(found), batch(0, sum(sizes)))
    largest = max(TREES.samples(part) for part in found)
    assert largest <= max(max(sizes), 30 if join else 0)


def test_batches_that_do_not_fit_together_are_kept_apart() -> None:
    wide = (np.ones((3, 5)), "a note", np.zeros(3, dtype=int))
    assert TREES.joined([batch(0, 3), wide]) is None
    assert TREES.joined([batch(0, 3), ("another note", *batch(0, 3)[1:])]) is None
    uneven = (np.ones((7, 2)), "a note", np.zeros(3, dtype=int))
    assert TREES.samples(uneven) == 3
    assert TREES.halves(uneven) == [uneven]
    kept = BatchCache(TREES, TREES.numbers)
    for part in (batch(0, 3), wide, uneven):
        kept.add(part)
    assert [TREES.samples(part) for part in kept.all() or []] == [3, 3, 3]
