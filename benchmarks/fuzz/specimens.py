"""Good files of every kind, and what may become of a damaged one.

All of them speak of f(x) = |x_1| + 2 |x_2|, of which it is known what is true: a file that passes
must make a true claim, whoever wrote it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.differential import load_checker
from benchmarks.fuzz.mutations import changed_array, changed_json
from scipy.optimize import NonlinearConstraint

import goldstein as gs
from goldstein.certificates import NearCertificate
from goldstein.storage import codec as files

SLOPES = np.array([1.0, 2.0])


class Broken(Exception):
    """A file did what no file may do."""


def f(x: np.ndarray) -> float:
    return float(SLOPES @ np.abs(x))


def slope(x: np.ndarray) -> np.ndarray:
    return SLOPES * np.sign(x)


def expression() -> gs.Expression:
    z = gs.Variable(2)
    return gs.abs(z[0]) + 2 * gs.abs(z[1])


#: x_1 >= 1/2 and x_2 >= 1/4: the answer is the corner.
BOUNDS = [(-1.0, 1.0), (0.25, 3.0)]


def half(exact: bool) -> Any:
    if exact:
        return gs.Variable(2)[0] >= 0.5
    return NonlinearConstraint(lambda x: x[0], 0.5, np.inf, jac=lambda x: np.array([1.0, 0.0]))


def possible(x: np.ndarray, delta: float, together: bool) -> float:
    """Return the smallest eps that is true of f at x; `together`: at one point of the ball."""
    free = np.abs(x) <= delta
    if together and free.all() and math.hypot(*x) > delta:
        return 1.0  # one of them, the dearer
    return float(np.linalg.norm(SLOPES[~free]))


def possible_kkt(x: np.ndarray, delta: float) -> float:
    """Return a lower bound of what is true of f at x with the constraint and the bounds."""
    first = min(abs(x[0]), abs(x[0] - 0.5)) <= delta
    second = min(abs(x[1]), abs(x[1] - 0.25)) <= delta
    return float(np.linalg.norm(SLOPES[[not first, not second]]))


def require_true(certificate: Any) -> None:
    """Raise if a claim that passed is false."""
    x, eps, delta = certificate.x, certificate.eps, certificate.delta
    kind, slack = type(certificate).__name__, 1e-9
    if "KKT" in kind:
        least = possible_kkt(x, delta * (1 + slack))
        if getattr(certificate, "feasibility", math.inf) < 0.5 - x[0] - slack:
            raise Broken(f"{certificate!r} passed; x is not as feasible as it says")
    else:
        least = possible(x, delta * (1 + slack), together=kind.startswith("Near"))
    if eps < least - slack:
        raise Broken(f"{certificate!r} at {x} passed, but nothing below {least:g} is true")


@dataclass(frozen=True)
class Specimen:
    """A good file, a forger of it, and a reader that says what became of a file."""

    name: str
    blob: bytes
    forge: Callable[[random.Random], bytes]
    read: Callable[[Path], str]


def _sealed(kind: str, arrays: dict[str, Any], header_fields: dict[str, Any]) -> bytes:
    """Return a certificate file whose own hash is right, whatever it holds."""
    blobs = {f"{name}.npy": files.npy(array) for name, array in arrays.items()}
    header: dict[str, Any] = {"schema": files.SCHEMA, "kind": kind, "arrays": sorted(arrays)}
    header["fields"] = header_fields
    header["sha256"] = files.digest(header, blobs)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", json.dumps(header, sort_keys=True))
        for name, blob in blobs.items():
            archive.writestr(name, blob)
    return buffer.getvalue()


def _forger(certificate: Any) -> Callable[[random.Random], bytes]:
    """Change a number or an array, and make all hashes right again."""
    kind, arrays, header = certificate.to_record()

    def forge(rng: random.Random) -> bytes:
        new_arrays, new_header = dict(arrays), dict(header)
        if rng.random() < 0.5:
            name = rng.choice(sorted(arrays))
            new_arrays[name] = changed_array(arrays[name], rng)
        else:
            name = rng.choice(sorted(header))
            new_header = changed_json(json.loads(json.dumps(header)), rng)
        # What no class takes is written as it is.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("error")
            known = {part.name for part in fields(certificate)} - {"digest"}
            content = {k: v for k, v in {**new_arrays, **new_header}.items() if k in known}
            rebuilt = replace(certificate, **content)
            new_header["digest"] = rebuilt.content_digest()
        try:
            return _sealed(kind, new_arrays, new_header)
        except (TypeError, ValueError, OverflowError):
            return _sealed(kind, arrays, {**header, "eps": header["eps"] / 2})

    return forge


def certificate_specimen(certificate: Any, verify: Callable[[Any], Any]) -> Specimen:
    digest = certificate.content_digest()

    def read(path: Path) -> str:
        try:
            loaded = gs.load_certificate(path)
        except gs.CertificateFileError:
            return "refused"
        try:
            found = verify(loaded)
        except gs.GoldsteinError:
            return "refused"
        if not found.ok:
            return "not verified"
        require_true(loaded)
        same = type(loaded) is type(certificate) and loaded.content_digest() == digest
        return "the same" if same else "another, true"

    name = type(certificate).__name__
    blob = _sealed(*certificate.to_record())
    return Specimen(name, blob, _forger(certificate), read)


def proof_specimen(certificate: Any, folder: Path) -> Specimen:
    kind = certificate.kind
    path = certificate.export(folder / f"{kind}.json", expression())
    blob = path.read_bytes()
    good = json.loads(blob)
    checker = load_checker()

    def forge(rng: random.Random) -> bytes:
        return json.dumps(changed_json(good, rng)).encode()

    def read(path: Path) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = checker.main([str(path)])
        word = {0: "TRUE: ", 1: "FALSE: ", 2: "UNREADABLE: "}.get(code, "?")
        told = (said.getvalue().count("\n") == 1) == (code == 2)  # else the function follows
        if not said.getvalue().startswith(word) or not told:
            raise Broken(f"exit code {code} with {said.getvalue()!r}")
        if code:
            return "refused" if code == 2 else "not verified"
        data = json.loads(path.read_bytes())
        if data["function"] != good["function"]:
            return "true of another function"
        claim, nodes = checker.read(str(path))
        del nodes
        x = np.array([a / claim["x"].den for a in claim["x"].lo])
        eps, delta = float(claim["eps"]), float(claim["delta"])
        if eps < possible(x, delta * (1 + 1e-9), claim["kind"] == "near") - 1e-9:
            raise Broken(f"goldstein-check says TRUE of ({eps}, {delta}) at {x}")
        return "the same" if data == good else "another, true"

    return Specimen(f"proof file ({kind})", blob, forge, read)


def journal_specimen(folder: Path) -> Specimen:
    path = folder / "run.journal"

    def solve(checkpoint: Path | None) -> gs.Result:
        return gs.minimize(
            f,
            [1.0, -0.7],
            slope,
            eps=0.1,
            delta=0.05,
            method="bundle",
            rng=0,
            max_calls=500,
            checkpoint=checkpoint,
        )

    whole = solve(path)
    blob = path.read_bytes()
    begin = blob.index(b"\n", blob.index(b"\n") + 1) + 1

    def forge(rng: random.Random) -> bytes:
        """Change an answer, and make its sum right again."""
        bad, at = bytearray(blob), begin
        for _ in range(rng.randrange(20)):
            at = _next_record(blob, at, begin)
        count = struct.unpack_from("<q", blob, at + 17)[0]
        if count > 0:
            place = at + 25 + 8 * rng.randrange(count)
            number = rng.choice((0.0, 1.0, -1.0, 1e300, math.nan, math.inf, rng.uniform(-3, 3)))
            struct.pack_into("<d", bad, place, number)
        else:
            bad[at] = 8
        stop = at + 25 + 8 * count
        struct.pack_into("<I", bad, stop, zlib.crc32(bytes(bad[at:stop])))
        return bytes(bad)

    def read(damaged: Path) -> str:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                result = solve(damaged)
            except gs.GoldsteinError:
                return "refused"
        if result.success and not result.certificate.verify(f, slope).ok:
            raise Broken("a resumed run ends with a certificate that does not verify")
        if not result.success:
            return "not verified"
        require_true(result.certificate)
        return "the same" if np.array_equal(result.x, whole.x) else "another, true"

    return Specimen("journal", blob, forge, read)


def _next_record(blob: bytes, at: int, begin: int) -> int:
    following = at + 29 + 8 * struct.unpack_from("<q", blob, at + 17)[0]
    return following if following < len(blob) else begin


def specimens(folder: Path) -> list[Specimen]:
    """Make a good file of every kind."""
    F = expression()
    x = np.array([1e-3, -2e-3])
    ways = [[1.0, 1.0], [-1.0, -1.0]]
    near = NearCertificate.prove(F, x, [0, 0], ways, [0.5, 0.5])
    goldstein = gs.certify(F, x, delta=1e-2, rng=0)
    target: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3, "rng": 0, "bounds": BOUNDS}
    kkt = gs.minimize(f, [0.9, 0.9], slope, constraints=half(False), **target).certificate
    near_kkt = gs.minimize(
        F, [0.9, 0.9], constraints=half(True), stationarity="near", **target
    ).certificate
    assert type(near_kkt).__name__ == "NearKKTCertificate"
    loose: dict[str, Any] = {"bounds": BOUNDS, "constraints": half(False)}
    exact: dict[str, Any] = {"bounds": BOUNDS, "constraints": half(True)}
    return [
        certificate_specimen(gs.certify(f, x, slope, delta=1e-2, rng=0), _verifier(f, slope)),
        certificate_specimen(gs.certify(f, [1.0, 1.0], slope, delta=1e-2), _verifier(f, slope)),
        certificate_specimen(goldstein, _verifier(F)),
        certificate_specimen(near, _verifier(F)),
        certificate_specimen(kkt, _verifier(f, slope, **loose)),
        certificate_specimen(near_kkt, _verifier(F, **exact)),
        proof_specimen(goldstein, folder),
        proof_specimen(near, folder),
        journal_specimen(folder),
    ]


def _verifier(*function: Any, **limits: Any) -> Callable[[Any], Any]:
    def verify(certificate: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "KKT" in type(certificate).__name__:
                return certificate.verify(*function, **limits)
            return certificate.verify(*function)

    return verify
