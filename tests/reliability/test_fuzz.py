"""Files from strangers: damaged, forged and oversized ones, in bounded time and memory."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import tracemalloc
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.differential import load_checker
from benchmarks.fuzz import mutations
from benchmarks.fuzz.__main__ import attempt, fuzz
from benchmarks.fuzz.specimens import Broken, Specimen, f, require_true, slope
from hypothesis import given, settings
from hypothesis import strategies as st

import goldstein as gs
from goldstein.storage import codec as files
from goldstein.storage.journal import Journal

CHECKER = load_checker()


def test_two_thousand_damaged_and_forged_files() -> None:
    """`make fuzz` reads fifty times as many."""
    outcomes, broken = fuzz(2000, seed=19)
    assert not broken
    assert outcomes.total() == 2000
    words: Counter[str] = Counter()
    for (_, _, word), count in outcomes.items():
        words[word] += count
    # Damage that nothing notices would be seen here: most files must not pass.
    assert words["refused"] > 1000
    assert words["not verified"] > 50
    kinds = {name for name, _, _ in outcomes}
    assert {"GoldsteinCertificate", "NearCertificate", "KKTCertificate"} < kinds
    assert {"NearKKTCertificate", "journal", "proof file (near)"} < kinds


def specimen(read: Any) -> Specimen:
    return Specimen("test", b"", lambda rng: b"", read)


def raises(failure: BaseException) -> Any:
    def read(path: Path) -> str:
        raise failure

    return read


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (raises(KeyError("x")), "raised KeyError"),
        (raises(RecursionError()), "raised RecursionError"),
        (raises(SystemExit(1)), "raised SystemExit"),
        (lambda path: str(os.system("true")), r"did os\.system"),
    ],
)
def test_the_fuzzer_sees_what_must_not_be(read: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(Broken, match=words):
        attempt(specimen(read), tmp_path)


def test_the_fuzzer_knows_what_is_true() -> None:
    certificate = gs.certify(f, [1e-3, -2e-3], slope, delta=1e-2, rng=0)
    require_true(certificate)
    with pytest.raises(Broken, match=r"nothing below 2\.23607 is true"):
        require_true(replace(certificate, delta=1e-4))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@settings(max_examples=150, deadline=None)
@given(data=JSON, kind=st.sampled_from(["goldstein", "near", "kkt", "near-kkt", "?"]))
def test_any_json_as_fields_of_a_certificate(data: Any, kind: str, folder: Path) -> None:
    header: dict[str, Any] = {"schema": 1, "kind": kind, "arrays": [], "fields": data}
    header["sha256"] = files.digest(header, {})
    path = folder / "any.cert"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    with pytest.raises(gs.CertificateFileError):
        gs.load_certificate(path)


@settings(max_examples=150, deadline=None)
@given(data=JSON)
def test_any_json_as_a_proof_file(data: Any, folder: Path) -> None:
    path = folder / "any.json"
    path.write_text(json.dumps(data))
    assert CHECKER.main([str(path)]) == 2


@settings(max_examples=150, deadline=None)
@given(blob=st.binary(max_size=300))
@pytest.mark.filterwarnings("ignore::goldstein.CheckpointWarning")
def test_any_bytes_after_the_header_of_a_journal(blob: bytes, folder: Path) -> None:
    path = folder / "any.journal"
    path.write_bytes(b'goldstein journal 2\n{"seed": 0}\n' + blob)
    journal = Journal(path, {"seed": 0})
    assert np.array_equal(journal.asked("square", np.array([3.0]), np.square), [9.0])
    journal.close()


@settings(max_examples=100, deadline=None)
@given(blob=st.binary(max_size=200))
def test_any_bytes_as_a_file(blob: bytes, folder: Path) -> None:
    path = folder / "any"
    path.write_bytes(blob)
    with pytest.raises(gs.CertificateFileError):
        gs.load_certificate(path)
    assert CHECKER.main([str(path)]) == 2
    if blob and not blob.startswith(b"goldstein journal"):
        with pytest.raises(gs.CheckpointError):
            Journal(path, {})
        assert path.read_bytes() == blob


# Small files that ask for much: memory and time stay bounded.


def packed(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, blob in entries.items():
            archive.writestr(name, blob)
    return buffer.getvalue()


def npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def sealed(arrays: dict[str, bytes], **fields: Any) -> bytes:
    blobs = {f"{name}.npy": blob for name, blob in arrays.items()}
    header: dict[str, Any] = {"schema": 1, "kind": "goldstein", "arrays": sorted(arrays)}
    header["fields"] = fields
    header["sha256"] = files.digest(header, blobs)
    return packed({"header.json": json.dumps(header).encode(), **blobs})


def nested_zip() -> bytes:
    inner = packed({"zeros": bytes(20 * 2**20)})
    return packed({"header.json": inner, "x.npy": inner})


SHAPE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }\n"
GREEDY: dict[str, bytes] = {
    "a bomb of zeros": packed({"header.json": b"{}", "x.npy": bytes(150 * 2**20)}),
    "a bomb as header": packed({"header.json": b" " * (70 * 2**20)}),
    "a zip in a zip": nested_zip(),
    "an array of 8 PB": sealed({"x": npy_header(SHAPE % 10**15)}),
    "an array of 10^30": sealed({"x": npy_header(SHAPE % 10**30)}),
    "a shape with 10,000 digits": sealed({"x": npy_header(SHAPE % ("9" * 10_000))}),
    "a deep header of an array": sealed({"x": npy_header("(" * 50_000)}),
    "deep JSON": packed({"header.json": b'{"a":' * 100_000}),
    "a long integer": packed({"header.json": b'{"schema": ' + b"1" * 10**6 + b"}"}),
    "a pivot with long integers": sealed({}, pivot=["1" * 10**6], eps=0.0),
    "ten thousand entries": packed({f"{k}.npy": b"" for k in range(10_000)}),
}


@pytest.mark.parametrize("what", GREEDY)
def test_greedy_certificates_are_refused_cheaply(what: str, tmp_path: Path) -> None:
    path = tmp_path / "greedy.cert"
    path.write_bytes(GREEDY[what])
    assert path.stat().st_size < 2**22
    tracemalloc.start()
    try:
        with pytest.raises(gs.CertificateFileError):
            gs.load_certificate(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**26


def test_mutations_change_files() -> None:
    """A fuzzer that changes nothing finds nothing."""
    rng = random.Random(0)
    blob = b'{"claim": 1234567890, "x": [0.5, 0.25]}'
    made = {mutations.damaged(blob, rng) for _ in range(500)}
    assert len(made) > 300
    assert len({json.dumps(mutations.changed_json({"a": [1, 2.0], "b": "c"}, rng))
                for _ in range(200)}) > 30  # fmt: skip
