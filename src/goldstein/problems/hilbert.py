"""Products with the Hilbert matrix, dense while small and by FFT when large."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import Pieces

#: Up to here the dense product is exact to the last bits and as fast as the FFT.
DENSE_LIMIT = 512


def hilbert_product(d: int) -> Pieces:
    """Return x -> Hx with H_ij = 1/(i+j-1), at O(d log d) cost for large d."""
    if d <= DENSE_LIMIT:
        index = np.arange(d)
        matrix = 1.0 / (index[:, None] + index + 1.0)
        return lambda x: np.asarray(matrix @ x)

    from scipy import fft  # imported here: only large problems pay for it

    # Hx is a convolution of 1/k with x reversed; wrap-around only reaches entries we drop.
    length = fft.next_fast_len(2 * d - 1, real=True)
    spectrum = fft.rfft(1.0 / np.arange(1.0, 2 * d), length)

    def product(x: Vector) -> Vector:
        full = fft.irfft(spectrum * fft.rfft(x[::-1], length), length)
        return np.asarray(full[d - 1 : 2 * d - 1])

    return product


def hilbert_row(d: int, i: int) -> Vector:
    """Return row i (counted from 0) of the d x d Hilbert matrix."""
    return 1.0 / np.arange(i + 1.0, i + 1.0 + d)
