"""How attacks speak to the library: forged claims, verdicts, honest runs; all of it public."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import inspect
import io
import math
import shutil
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.adversary.suite import Seen

import goldstein as gs
import goldstein_check

#: Whoever verifies a claim draws displacements of his own: five who do must agree.
SEEDS = (1, 2, 3, 4, 5)

#: Bounds in float64 and lower bounds of the truth may differ by so much, relatively.
ROUNDING = 1e-9


def below(eps: float, least: float, scale: float = 1.0) -> bool:
    """Whether a claim of eps is stronger than the truth allows, rounding apart."""
    return eps < least * (1.0 - ROUNDING) - 1e-12 * scale


def forged(certificate: Any, **fields: Any) -> Any:
    """Return a claim with other fields, sealed anew; None where such a claim cannot be made."""
    names = {field.name for field in dataclasses.fields(certificate)}
    if not set(fields) <= names:
        return None
    seal = {"digest": ""} if "digest" in names else {}
    try:
        return dataclasses.replace(certificate, **{**seal, **fields})
    except (gs.GoldsteinError, TypeError, ValueError):
        return None


def made(kind: type, **fields: Any) -> Any:
    """Make a claim by hand; None where the library refuses to hold it."""
    try:
        return kind(**fields)
    except gs.GoldsteinError:
        return None


def verdict(certificate: Any, *function: Any, **limits: Any) -> tuple[bool, str]:
    """Return whether a claim verifies, and the label it then has; without a seed by seed 0."""
    if certificate is None:
        return False, "conditional"
    taken = inspect.signature(certificate.verify).parameters
    given = {name: value for name, value in {"seed": 0, **limits}.items() if name in taken}
    try:
        found = certificate.verify(*function, **given)
    except gs.GoldsteinError:
        return False, certificate.label
    return bool(found.ok), found.label if found.ok else certificate.label


def five(certificate: Any, *function: Any, **limits: Any) -> tuple[int, int, str]:
    """Verify with five seeds: how many accept, how many there are, the label."""
    seeds = SEEDS if "seed" in inspect.signature(certificate.verify).parameters else (None,)
    found = [verdict(certificate, *function, seed=seed, **limits) for seed in seeds]
    labels = {label for ok, label in found if ok} or {certificate.label}
    return sum(ok for ok, _ in found), len(found), min(labels)


def honest(
    seen: Seen,
    run: Callable[[], Any],
    function: tuple[Any, ...],
    false: Callable[[Any], str] | None,
    *,
    belief: str | None = None,
    deterministic: bool = True,
    **limits: Any,
) -> Any:
    """Run the library as its user would, and judge what it states.

    Parameters
    ----------
    run : callable
        `minimize` or `certify`.
    function : tuple
        What `verify` is given: (fun, jac), or an expression.
    false : callable
        Says of a certificate what is false about it, or ""; None where nothing is known.
    deterministic : bool
        The function answers alike whenever it is asked: what is stated must verify.
    limits
        Bounds and constraints for `verify`.

    Returns
    -------
    The certificate, or None.
    """
    try:
        result = run()
    except gs.GoldsteinError as refusal:
        seen.silent(f"refused: {type(refusal).__name__}")
        return None
    certificate = getattr(result, "certificate", result)
    if certificate is None:
        seen.silent(f"status {result.status.name}")
        return None
    if getattr(certificate, "degenerate", False):
        seen.silent("degenerate, and said so")
        return None
    success = getattr(result, "success", True)
    accepted, asked, label = five(certificate, *function, **limits)
    wrong = false(certificate) if false else ""
    true = not wrong if false else None
    said = f"{certificate.summary()}, {accepted} of {asked} seeds verify; {wrong}"
    if accepted < asked:
        seen.claim(False, label, true, said, own=deterministic and success)
    if accepted:
        miss = 1.0 - getattr(certificate, "confidence", 1.0)
        seen.claim(True, label, true, said, belief=belief, miss=miss)
    return certificate


@functools.cache
def scratch() -> Path:
    """Return a folder for files of this process, in memory if there is such a place."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="adversary-", dir=memory if memory.is_dir() else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def through_a_file(certificate: Any) -> Any:
    """Return a certificate as a stranger gets it, or None where no file can be made of it."""
    try:
        return gs.load_certificate(certificate.save(scratch() / "claim"))
    except gs.GoldsteinError:
        return None


def proof_file_is_true(certificate: Any, expression: Any) -> bool | None:
    """Return what `goldstein-check` says of an exported claim; None where nothing is exported."""
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            path = certificate.export(scratch() / "proof.json", expression)
        except gs.GoldsteinError:
            return None
        return bool(goldstein_check.main([str(path)]) == 0)


def exact(point: Any) -> list[Fraction]:
    """Return the coordinates of a point of floats, exactly."""
    return [Fraction(float(entry)) for entry in point]


def radius(delta: float) -> Fraction:
    """Return a radius, exactly; of an infinite ball that of one which holds everything."""
    return Fraction(delta) if math.isfinite(delta) else Fraction(10) ** 400


def square_distance(a: Any, b: Any) -> Fraction:
    return sum(((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(a, b)), Fraction(0))
