"""Exact numbers as text: rationals as "p/q", floats that are not small integers in hexadecimal."""

from __future__ import annotations

from fractions import Fraction

#: Longer integers are written in hexadecimal: their decimal digits take quadratic time.
_DECIMAL_BITS = 3000


def written(value: float | Fraction) -> str:
    """Return a finite number exactly, as text.

    Examples
    --------
    >>> written(3.0), written(0.1), written(Fraction(1, 3)), written(-2.5)
    ('3', '0x1.999999999999ap-4', '1/3', '-0x1.4p+1')
    """
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 2**53):
        mantissa, exponent = value.hex().split("p")
        return mantissa.rstrip("0").rstrip(".") + "p" + exponent
    exact = Fraction(value)
    if exact.denominator == 1:
        return _integer(exact.numerator)
    return f"{_integer(exact.numerator)}/{_integer(exact.denominator)}"


def _integer(value: int) -> str:
    return str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)


__all__ = ["written"]
