"""Counter-based streams replay, and never share draws."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.streams import seed_from, stream


@given(seed=st.integers(0, 2**128 - 1), step=st.integers(0, 2**63), purpose=st.text(max_size=8))
def test_a_stream_replays(seed: int, step: int, purpose: str) -> None:
    first = stream(seed, step, purpose).standard_normal(5)
    assert np.array_equal(first, stream(seed, step, purpose).standard_normal(5))


@given(seed=st.integers(0, 2**70), step=st.integers(0, 10**9))
def test_neighbours_differ(seed: int, step: int) -> None:
    here = stream(seed, step, "a").random(4)
    for other in (
        stream(seed + 1, step, "a"),
        stream(seed, step + 1, "a"),
        stream(seed, step, "b"),
        stream(seed + 2**64, step, "a"),
    ):
        assert not np.array_equal(here, other.random(4))


@given(seed=st.integers(0, 2**128 - 1), step=st.integers(0, 2**64), purpose=st.text(max_size=8))
def test_a_stream_is_philox_with_the_seed_for_a_key(seed: int, step: int, purpose: str) -> None:
    """However its generator is made: what a seed leads to stays the same."""
    word = 2**64
    key = np.array([seed % word, zlib.crc32(purpose.encode())], dtype=np.uint64)
    counter = np.array([0, 0, step % word, seed // word % word], dtype=np.uint64)
    wanted = np.random.Generator(np.random.Philox(key=key, counter=counter)).standard_normal(5)
    assert np.array_equal(wanted, stream(seed, step, purpose).standard_normal(5))


def test_a_stream_survives_pickling() -> None:
    rng = stream(3, 1, "a")
    rng.random(3)
    assert pickle.loads(pickle.dumps(rng)).random() == rng.random()


def test_long_draws_of_one_step_do_not_run_into_the_next() -> None:
    long = stream(1, 0, "a").integers(0, 2**63, 100_000)
    following = stream(1, 1, "a").integers(0, 2**63, 100)
    assert not np.isin(following, long).any()


def test_streams_are_equal_across_processes() -> None:
    code = "from goldstein.numerics.streams import stream; print(stream(7, 3, 'x').random().hex())"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == stream(7, 3, "x").random().hex()


def test_neighbouring_streams_are_uncorrelated() -> None:
    draws = np.array([stream(3, step, "a").standard_normal(2000) for step in range(12)])
    correlation = np.corrcoef(draws) - np.eye(12)
    assert np.abs(correlation).max() < 0.1


def test_seeds() -> None:
    assert seed_from(np.int64(9)) == 9
    assert seed_from(None) != seed_from(None)
    assert seed_from(np.random.default_rng(4)) == seed_from(np.random.default_rng(4))
    with pytest.raises(InputError, match="non-negative"):
        seed_from(-1)
    for wrong in (True, 1.5, "7", np.random.RandomState(0)):
        with pytest.raises(InputTypeError, match="rng must be None"):
            seed_from(wrong)  # type: ignore[arg-type]
