"""Counter-based random streams: the same (seed, step, purpose) gives the same draws everywhere."""

from __future__ import annotations

import secrets
import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from goldstein.errors import InputError, InputTypeError

_WORD = 2**64


class _Key(ISeedSequence):
    """A key for a generator, as it is: one that gets no seed asks the system for one first."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Any:
        return self._words


def stream(seed: int, step: int, purpose: str) -> np.random.Generator:
    """Return the generator of one step and one purpose.

    Streams are independent of each other and of the order in which they are opened, so a run can be
    replayed, resumed or split over workers bit for bit.

    Parameters
    ----------
    seed : int
        Seed of the run.
    step : int
        Counter: outer iteration, round, training step.
    purpose : str
        What the draws are for; different purposes never share draws.

    Examples
    --------
    >>> stream(7, 3, "ball").random() == stream(7, 3, "ball").random()
    True
    >>> stream(7, 3, "ball").random() == stream(7, 4, "ball").random()
    False
    """
    key = _Key([seed % _WORD, zlib.crc32(purpose.encode())])
    # The low counter words advance with the draws; the step lives in the high ones.
    counter = np.array([0, 0, step % _WORD, seed // _WORD % _WORD], dtype=np.uint64)
    # Any ISeedSequence will do, whatever the types say.
    return np.random.Generator(np.random.Philox(key, counter=counter))  # type: ignore[arg-type]


#: Constants of SplitMix64 (Steele, Lea and Flood 2014).
MIX_INCREMENT = 0x9E3779B97F4A7C15
MIX_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
MIX_UNIT = 2.0**-53


@lru_cache(maxsize=128)
def mixing_key(seed: int, purpose: str) -> int:
    """Return the key that `mixed_uniform` needs, 64 bits of `stream(seed, 0, purpose)`."""
    return int(stream(seed, 0, purpose).integers(_WORD, dtype=np.uint64, endpoint=False))


def mixed_uniform(key: int, step: int) -> float:
    """Return one number of [0, 1) for a step: a stream so short that any device can compute it.

    It takes six operations on 64-bit words, where `stream` takes a generator; use it for a draw per
    step that must not wait for the host.

    Examples
    --------
    >>> key = mixing_key(7, "position")
    >>> mixed_uniform(key, 3) == mixed_uniform(key, 3), mixed_uniform(key, 3) < 1.0
    (True, True)
    """
    z = (key + step * MIX_INCREMENT) % _WORD
    for shift, factor in MIX_ROUNDS:
        z = (z ^ (z >> shift)) * factor % _WORD
    return ((z ^ (z >> 31)) >> 11) * MIX_UNIT


def seed_from(rng: int | np.integer | np.random.Generator | None) -> int:
    """Turn the user's `rng` argument into the integer seed that a result records.

    Examples
    --------
    >>> seed_from(5)
    5
    """
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng < 0:
            raise InputError(f"rng must be a non-negative integer, got {rng}.")
        return int(rng)
    raise InputTypeError(
        "rng must be None, a non-negative int or a numpy.random.Generator, "
        f"got {type(rng).__name__}."
    )
