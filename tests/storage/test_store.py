"""Certificate files: round trips, and every damaged or hostile file gets one clear sentence."""

from __future__ import annotations

import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.functions import norm1

import goldstein as gs
from goldstein.storage import codec as files


@pytest.fixture(scope="module")
def certificate() -> Any:
    return gs.certify(norm1, [0.0, 1e-4], np.sign, delta=1e-2, rng=3)


@pytest.fixture
def saved(certificate: Any, tmp_path: Path) -> Path:
    return certificate.save(tmp_path / "good.cert")


def refused(path: Path, words: str | None = None) -> None:
    """Loading fails with our error and one sentence that names the file, and nothing else."""
    with pytest.raises(gs.CertificateFileError, match=words) as caught:
        gs.load_certificate(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message.split("(")[0]


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, blob in content.items():
            archive.writestr(name, blob)
    return path


def reseal(content: dict[str, bytes], change: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
    """What a competent forger does: change the header and recompute the file's hash."""
    header = json.loads(content["header.json"])
    header.pop("sha256")
    change(header)
    blobs = {k: v for k, v in content.items() if k != "header.json"}
    header["sha256"] = files.digest(header, blobs)
    return {"header.json": json.dumps(header).encode(), **blobs}


def npy(array: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **how)
    return buffer.getvalue()


def test_round_trip_is_exact(certificate: Any, saved: Path) -> None:
    again = gs.load_certificate(saved)
    for name, value in vars(certificate).items():
        assert np.array_equal(getattr(again, name), value), name
    assert again.verify(norm1, np.sign).ok


def test_round_trip_with_a_descent_direction(tmp_path: Path) -> None:
    cert = gs.certify(norm1, [1.0, 1.0], np.sign, delta=1e-2, rng=3)
    again = gs.load_certificate(cert.save(tmp_path / "with"))
    assert np.array_equal(again.descent, cert.descent)
    assert again.verify(norm1, np.sign).ok


def test_the_suffix_is_added_and_nothing_is_left_over(certificate: Any, tmp_path: Path) -> None:
    assert certificate.save(tmp_path / "name").name == "name.cert"
    assert certificate.save(tmp_path / "other.bin").name == "other.bin"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["name.cert", "other.bin"]


def test_another_process_verifies_the_file(saved: Path) -> None:
    code = (
        "import sys, numpy as np, goldstein as gs\n"
        "found = gs.load_certificate(sys.argv[1]).verify(lambda x: abs(x).sum(), np.sign)\n"
        "sys.exit(0 if found.ok else 1)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(saved)], check=False).returncode == 0


def test_missing_file_and_folder(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.cert", "no such certificate file")
    refused(tmp_path, "no such certificate file")


def test_every_truncation_is_refused(saved: Path, tmp_path: Path) -> None:
    blob = saved.read_bytes()
    for size in [0, 1, 10, *np.linspace(30, len(blob) - 1, 25).astype(int)]:
        short = tmp_path / "short.cert"
        short.write_bytes(blob[:size])
        refused(short)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_a_flipped_byte_never_passes_unnoticed(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, certificate: Any
) -> None:
    """Refused, or a byte that means nothing (zip timestamps) and the content is the same."""
    folder = tmp_path_factory.mktemp("flip")
    blob = bytearray(certificate.save(folder / "good.cert").read_bytes())
    place = data.draw(st.integers(0, len(blob) - 1))
    blob[place] ^= data.draw(st.integers(1, 255))
    (folder / "bad.cert").write_bytes(bytes(blob))
    try:
        loaded = gs.load_certificate(folder / "bad.cert")
    except gs.CertificateFileError:
        return
    assert loaded.content_digest() == certificate.content_digest()
    assert loaded.verify(norm1, np.sign).ok


FIELDS: dict[str, Any] = {
    "delta": [0.5, 0.0, "0.1", None, True, float("nan"), float("inf"), [1.0]],
    "eps": [0.0, -1.0, "x", None, float("nan"), float("inf"), {}],
    "label": ["certified", "estimated", "nonsense", None, 3, []],
    "meta": [{}, {"seed": 0}, None, [], "meta"],
    "digest": ["", "00", None, 7],
}
FIELD_GRID = [(name, number) for name, values in FIELDS.items() for number in range(len(values))]


@pytest.mark.parametrize(("name", "number"), FIELD_GRID)
@pytest.mark.parametrize("rehash", [False, True])
def test_a_changed_field_in_the_file(
    saved: Path, tmp_path: Path, name: str, number: int, rehash: bool
) -> None:
    def change(header: dict[str, Any]) -> None:
        header["fields"][name] = FIELDS[name][number]

    content = entries(saved)
    if rehash:
        content = reseal(content, change)
    else:
        header = json.loads(content["header.json"])
        change(header)
        content["header.json"] = json.dumps(header).encode()
    path = write(tmp_path / "changed.cert", content)
    try:
        loaded = gs.load_certificate(path)
    except gs.CertificateFileError:
        return
    assert rehash, "the file's own hash must catch a plain edit"
    assert not loaded.verify(norm1, np.sign).ok


@pytest.mark.parametrize("name", ["x", "points", "gradients", "weights"])
@pytest.mark.parametrize("rehash", [False, True])
def test_a_changed_array_in_the_file(saved: Path, tmp_path: Path, name: str, rehash: bool) -> None:
    content = entries(saved)
    array = np.load(io.BytesIO(content[f"{name}.npy"])).copy()
    array.flat[0] += 0.25
    content[f"{name}.npy"] = npy(array)
    if rehash:
        content = reseal(content, lambda header: None)
        loaded = gs.load_certificate(write(tmp_path / "changed.cert", content))
        assert not loaded.verify(norm1, np.sign).ok
    else:
        refused(write(tmp_path / "changed.cert", content), "does not match its hash")


class Bomb:
    fired = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (setattr, (Bomb, "fired", True))


HOSTILE_ARRAYS: dict[str, bytes] = {
    "pickled objects": npy(np.array([Bomb()], dtype=object), allow_pickle=True),
    "a raw pickle": pickle.dumps(Bomb()),
    "strings": npy(np.array([["0.1", "0.2"]])),
    "complex numbers": npy(np.ones((3, 2), dtype=complex)),
    "NaN": npy(np.full((3, 2), np.nan)),
    "infinity": npy(np.full((3, 2), np.inf)),
    "float32": npy(np.ones((3, 2), dtype=np.float32)),
    "integers": npy(np.ones((3, 2), dtype=np.int64)),
    "the wrong shape": npy(np.ones((7, 7))),
    "no dimension": npy(np.array(1.0)),
    "an empty array": npy(np.zeros((0, 2))),
    "a structured type": npy(np.zeros(3, dtype=[("a", float), ("b", float)])),
    "nothing": b"",
    "trailing bytes": npy(np.ones((3, 2))) + b"more",
    "a shape of petabytes": npy(np.ones((3, 2))).replace(b"(3, 2), ", b"(9999999999999, 2), ")
    .replace(b" " * 11 + b"\n", b"\n"),
    "a negative shape": npy(np.ones((3, 2))).replace(b"(3, 2)", b"(-3,2)"),
    "a huge header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b"{",
    "code": b"\x93NUMPY\x01\x00" + struct.pack("<H", 22) + b"__import__('os').abort",
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE_ARRAYS)
@pytest.mark.parametrize("name", ["points", "weights"])
def test_hostile_arrays(saved: Path, tmp_path: Path, name: str, kind: str) -> None:
    content = {**entries(saved), f"{name}.npy": HOSTILE_ARRAYS[kind]}
    refused(write(tmp_path / "hostile.cert", reseal(content, lambda header: None)))
    assert not Bomb.fired


HEADERS: dict[str, bytes] = {
    "not JSON": b"{",
    "not text": b"\xff\xfe\x00",
    "a list": b"[]",
    "a number": b"1",
    "deep nesting": b"[" * 100_000 + b"]" * 100_000,
    "a huge integer": b'{"schema": ' + b"9" * 10_000 + b"}",
    "no schema": b"{}",
    "another schema": b'{"schema": 2}',
    "the schema as text": b'{"schema": "1"}',
}


@pytest.mark.parametrize("kind", HEADERS)
def test_hostile_headers(saved: Path, tmp_path: Path, kind: str) -> None:
    content = {**entries(saved), "header.json": HEADERS[kind]}
    refused(write(tmp_path / "hostile.cert", content))


HEADER_CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "an unknown kind": lambda h: h.update(kind="mystery"),
    "a kind that is a list": lambda h: h.update(kind=["goldstein"]),
    "no kind": lambda h: h.pop("kind"),
    "no arrays": lambda h: h.pop("arrays"),
    "arrays as one text": lambda h: h.update(arrays="x"),
    "arrays of numbers": lambda h: h.update(arrays=[1, 2]),
    "an array twice": lambda h: h["arrays"].append("x"),
    "an array too few": lambda h: h["arrays"].pop(),
    "no fields": lambda h: h.pop("fields"),
    "fields as a list": lambda h: h.update(fields=[]),
    "a missing field": lambda h: h["fields"].pop("eps"),
    "an extra field": lambda h: h["fields"].update(extra=1),
    "an array among the fields": lambda h: h["fields"].update(x=[0.0]),
    "another schema": lambda h: h.update(schema=99),
}


@pytest.mark.parametrize("kind", HEADER_CHANGES)
def test_wrong_headers_with_a_right_hash(saved: Path, tmp_path: Path, kind: str) -> None:
    refused(write(tmp_path / "hostile.cert", reseal(entries(saved), HEADER_CHANGES[kind])))


def test_path_traversal_writes_nothing(saved: Path, tmp_path: Path) -> None:
    for name in ("../escaped.npy", "/tmp/escaped.npy", "..\\escaped.npy", "sub/x.npy"):
        content = {**entries(saved), name: npy(np.ones(2))}
        refused(write(tmp_path / "hostile.cert", content), "entries do not match")

        def listed(header: dict[str, Any], name: str = name) -> None:
            header["arrays"].append(name.removesuffix(".npy"))

        refused(write(tmp_path / "hostile.cert", reseal(content, listed)))
    assert not (tmp_path.parent / "escaped.npy").exists()
    assert not Path("/tmp/escaped.npy").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_entries(saved: Path) -> None:
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("x.npy", npy(np.zeros(2)))
    refused(saved, "same entry twice")


def test_a_zip_bomb_is_refused_unread(saved: Path, tmp_path: Path) -> None:
    bomb = write(tmp_path / "bomb.cert", {**entries(saved), "points.npy": bytes(200 * 2**20)})
    assert bomb.stat().st_size < 2**20
    refused(bomb, "would unpack to")
    header = write(tmp_path / "header.cert", {"header.json": b" " * (70 * 2**20)})
    refused(header, "no usable header")


def test_a_lying_size_is_refused(saved: Path, tmp_path: Path) -> None:
    """The central directory says 100 GB; nothing is allocated."""
    blob = bytearray(saved.read_bytes())
    at = blob.index(b"PK\x01\x02")
    blob[at + 24 : at + 28] = struct.pack("<I", 2**32 - 2)
    path = tmp_path / "lying.cert"
    path.write_bytes(bytes(blob))
    refused(path)


def test_encrypted_and_exotic_archives(saved: Path, tmp_path: Path) -> None:
    blob = bytearray(saved.read_bytes())
    for at in (blob.index(b"PK\x01\x02") + 8, 6):
        blob[at] |= 1  # the flag of encryption
    path = tmp_path / "encrypted.cert"
    path.write_bytes(bytes(blob))
    refused(path)
    blob = bytearray(saved.read_bytes())
    blob[blob.index(b"PK\x01\x02") + 10] = 77  # a compression method nobody has
    path.write_bytes(bytes(blob))
    refused(path)


def test_other_files_are_not_certificates(tmp_path: Path) -> None:
    text = tmp_path / "notes.cert"
    text.write_text("eps = 0, trust me")
    refused(text)
    np.savez(tmp_path / "arrays.npz", x=np.ones(2))
    refused(tmp_path / "arrays.npz", "no usable header")
    (tmp_path / "pickle.cert").write_bytes(pickle.dumps(Bomb()))
    refused(tmp_path / "pickle.cert")
    assert not Bomb.fired
