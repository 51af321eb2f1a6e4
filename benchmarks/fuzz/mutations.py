"""Ways to damage bytes, JSON and arrays."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

#: Numbers that break what was not written with them in mind.
_SIZES = (0, 1, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1)

#: What a JSON value may be replaced by.
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**400, 0.0, -0.0, 1e-320, 1e308, float("nan"),
    float("inf"), -float("inf"), "", "0", "1/3", "1/0", "0x1p+2000", "nan", "\x00", "../x", [], {},
    [[]], {"a": {}}, [0.5] * 3,
)  # fmt: skip


def flip(blob: bytes, rng: random.Random) -> bytes:
    bad = bytearray(blob)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else 0xFF
    return bytes(bad)


def truncate(blob: bytes, rng: random.Random) -> bytes:
    return blob[: rng.randrange(len(blob))]


def remove(blob: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(blob))
    return blob[:at] + blob[at + rng.choice((1, 2, 8, 64)) :]


def insert(blob: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(blob))
    piece = rng.choice((rng.randbytes(rng.randrange(1, 40)), blob[at : at + 64], b"[" * 2000))
    return blob[:at] + piece + blob[at:]


def overwrite_number(blob: bytes, rng: random.Random) -> bytes:
    """Put a size that is too large where a size may stand."""
    form = rng.choice("HIQ")
    number = struct.pack(f"<{form}", rng.choice(_SIZES) % 2 ** (8 * struct.calcsize(form)))
    at = rng.randrange(max(1, len(blob) - len(number)))
    return blob[:at] + number + blob[at + len(number) :]


def overwrite_digit(blob: bytes, rng: random.Random) -> bytes:
    """Change a digit: text stays text."""
    places = [k for k, b in enumerate(blob) if chr(b).isdigit()]
    if not places:
        return flip(blob, rng)
    at = rng.choice(places)
    return blob[:at] + str(rng.randrange(10)).encode() + blob[at + 1 :]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip, flip, truncate, remove, insert, overwrite_number, overwrite_digit,
)  # fmt: skip


def damaged(blob: bytes, rng: random.Random) -> bytes:
    """Return the bytes after one or a few accidents."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if blob:
            blob = rng.choice(BYTES)(blob, rng)
    return blob


def changed_json(data: Any, rng: random.Random) -> Any:
    """Return JSON data with one place changed."""
    children = list(data) if isinstance(data, dict) else list(range(len(data)))
    if not children:
        return rng.choice(_VALUES)
    key = rng.choice(children)
    if isinstance(data[key], dict | list) and rng.random() < 0.7:
        replacement = changed_json(data[key], rng)
    elif isinstance(data[key], float | int) and rng.random() < 0.5:
        replacement = data[key] * rng.choice((0.5, 0.999, 2, -1, 1e-9))
    else:
        replacement = rng.choice(_VALUES)
    copy = data.copy()
    deed = rng.random()
    if deed < 0.1:
        del copy[key]
    elif deed < 0.2 and isinstance(copy, list):
        copy.append(copy[key])
    else:
        copy[key] = replacement
    return copy


def changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Return an array with other numbers, another shape or another type."""
    deed = rng.randrange(8)
    copy = array.copy()
    if deed == 0:
        return array.astype(rng.choice((np.float32, np.int64, np.complex128, bool, ">f8")))
    if deed == 1:
        return array.reshape(-1)[: rng.randrange(array.size + 1)]
    if deed == 2:
        return np.concatenate([copy, copy]) if copy.ndim else copy
    if not copy.size:
        return np.ones(3)
    place = rng.randrange(copy.size)
    numbers = (np.nan, np.inf, 0.0, -1.0, 1e308, 1e-320, 0.5, copy.flat[place] * 0.999)
    if copy.dtype.kind == "f":
        copy.flat[place] = rng.choice(numbers)
    else:
        copy.flat[place] = rng.choice((-1, 0, 1, 2**31))
    return copy
