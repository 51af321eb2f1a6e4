"""Counter-based random streams: the same (seed, step, purpose) gives the same draws everywhere."""

from __future__ import annotations

import secrets
import zlib

import numpy as np

from goldstein.errors import InputError, InputTypeError

_WORD = 2**64


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
    key = np.array([seed % _WORD, zlib.crc32(purpose.encode())], dtype=np.uint64)
    # The low counter words advance with the draws; the step lives in the high ones.
    counter = np.array([0, 0, step % _WORD, seed // _WORD % _WORD], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


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
