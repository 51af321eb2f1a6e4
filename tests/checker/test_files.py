"""Certificate files: every refusal by the sentence that names what is wrong."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goldstein.errors import CertificateFileError, InputError
from goldstein.storage import codec as files
from goldstein.storage.codec import HEADER, digest, read_record

ARRAY = np.array([1.0, 2.0, 3.0])


def npy(array: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), **how)
    return buffer.getvalue()


def sealed(
    blobs: dict[str, bytes] | None = None, compression: int = zipfile.ZIP_STORED, **header: Any
) -> Callable[[Path], Path]:
    """Return a writer of a file with these entries and this header, and with the right hash."""
    blobs = {"x.npy": npy(ARRAY)} if blobs is None else blobs
    fields = {"schema": 1, "kind": "test", "arrays": ["x"], "fields": {"eps": 0.5}} | header
    fields = {name: value for name, value in fields.items() if value is not None}
    fields.setdefault("sha256", digest(fields, blobs))

    def write(path: Path) -> Path:
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr(HEADER, json.dumps(fields))
            for name, blob in blobs.items():
                archive.writestr(name, blob)
        return path

    return write


def read(path: Path) -> Any:
    return read_record(path, lambda kind, arrays, fields: (kind, arrays, fields))


def test_a_good_file(tmp_path: Path) -> None:
    two = {"x.npy": npy(ARRAY), "n.npy": npy(np.arange(4).reshape(2, 2))}
    for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        kind, arrays, fields = read(sealed(two, compression, arrays=["x", "n"])(tmp_path / "good"))
        assert (kind, fields) == ("test", {"eps": 0.5})
        assert arrays["x"].tolist() == [1.0, 2.0, 3.0]
        assert arrays["n"].tolist() == [[0, 1], [2, 3]]
    for dtype in ("f4", "i8", "u1", "b1"):
        whole = sealed({"x.npy": npy(ARRAY.astype(dtype))})(tmp_path / "good")
        assert read(whole)[1]["x"].dtype == dtype


class Pickled:
    """An object that a reader of pickles would make."""


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "schema 2": (sealed(schema=2), "has schema 2"),
    "no schema": (sealed(schema=None), "has schema None"),
    "no list of arrays": (sealed(arrays="x"), "does not list"),
    "names that are none": (sealed(arrays=[1]), "does not list"),
    "an array less": (sealed(arrays=[]), "do not match the header"),
    "an array more": (sealed(arrays=["x", "y"]), "do not match the header"),
    "an array twice": (sealed(arrays=["x", "x"]), "do not match the header"),
    "another hash": (sealed(sha256="0" * 64), "altered or damaged"),
    "no hash": (sealed(sha256=""), "altered or damaged"),
    "no fields": (sealed(fields=[]), "has no fields"),
    "missing fields": (sealed(fields=None), "has no fields"),
    "packed otherwise": (sealed(compression=zipfile.ZIP_LZMA), "packed in an unknown way"),
    "format 2": (sealed({"x.npy": npy(ARRAY, version=(2, 0))}), "unknown array format"),
    "objects": (
        sealed({"x.npy": npy(np.array([Pickled()], dtype=object))}),
        "expected plain numbers",
    ),
    "text": (sealed({"x.npy": npy(np.array(["a"]))}), "expected plain numbers"),
    "complex": (sealed({"x.npy": npy(np.array([1j]))}), "expected plain numbers"),
    "dates": (sealed({"x.npy": npy(np.array(["2000"], "M8[D]"))}), "expected plain numbers"),
    "too few bytes": (sealed({"x.npy": npy(ARRAY)[:-1]}), "another number of bytes"),
    "too many bytes": (sealed({"x.npy": npy(ARRAY) + b"0"}), "another number of bytes"),
    "no array": (sealed({"x.npy": b"something else"}), "damaged, truncated"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_by_its_sentence(name: str, tmp_path: Path) -> None:
    write, words = BAD[name]
    with pytest.raises(CertificateFileError, match=words):
        read(write(tmp_path / "bad"))


def raw(path: Path, entries: list[tuple[str, bytes]]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, blob in entries:
            archive.writestr(name, blob)
    return path


def test_one_entry_that_is_packed_otherwise(tmp_path: Path) -> None:
    path = sealed()(tmp_path / "mixed")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y.npy", npy(ARRAY), zipfile.ZIP_LZMA)
    with pytest.raises(CertificateFileError, match="packed in an unknown way"):
        read(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    with pytest.raises(CertificateFileError, match="the same entry twice"):
        read(raw(path, [(HEADER, b"{}"), (HEADER, b"{}")]))
    with pytest.raises(CertificateFileError, match="no usable header"):
        read(raw(path, [("x.npy", npy(ARRAY))]))
    with pytest.raises(CertificateFileError, match="has schema None"):
        read(raw(path, [(HEADER, b"[]")]))
    with pytest.raises(CertificateFileError, match="damaged, truncated"):
        read(raw(path, [(HEADER, b"{")]))
    with pytest.raises(CertificateFileError, match="no such certificate file"):
        read(tmp_path / "nothing")
    with pytest.raises(CertificateFileError, match="no such certificate file"):
        read(tmp_path)


def test_what_a_certificate_says_about_itself(tmp_path: Path) -> None:
    good = sealed()(tmp_path / "good")

    def refuse(error: Exception) -> Any:
        def make(*record: Any) -> Any:
            raise error

        return make

    with pytest.raises(CertificateFileError, match="not a valid certificate: no"):
        read_record(good, refuse(InputError("no")))
    with pytest.raises(CertificateFileError, match=r"^exactly this$"):
        read_record(good, refuse(CertificateFileError("exactly this")))
    with pytest.raises(CertificateFileError, match="KeyError"):
        read_record(good, refuse(KeyError("x")))


LIMITS: dict[str, tuple[dict[str, int], str]] = {
    "a long header": ({"_HEADER_LIMIT": 0}, "no usable header"),
    "large arrays": ({"_ARRAY_LIMIT": 0}, "would unpack to"),
    "growth": ({"_FREE_SIZE": 0, "_GROWTH_LIMIT": 0}, "would unpack to"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_sizes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a limit a file is read, one byte beyond it is refused."""
    path = sealed()(tmp_path / "good")
    with zipfile.ZipFile(path) as archive:
        header = archive.getinfo(HEADER).file_size
        total = sum(info.file_size for info in archive.infolist())
    limits, words = LIMITS[name]
    size = {"a long header": header, "large arrays": total, "growth": total}[name]
    first, *others = limits
    for other in others:
        monkeypatch.setattr(files, other, 0)
    monkeypatch.setattr(files, first, size)
    assert read(path)[0] == "test"
    monkeypatch.setattr(files, first, size - 1)
    with pytest.raises(CertificateFileError, match=words):
        read(path)


def test_a_file_may_grow_by_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = sealed({"x.npy": npy(np.zeros(10**5))}, zipfile.ZIP_DEFLATED)(tmp_path / "zeros")
    assert read(zeros)[1]["x"].size == 10**5
    monkeypatch.setattr(files, "_FREE_SIZE", 0)
    with pytest.raises(CertificateFileError, match="would unpack to"):
        read(zeros)
    monkeypatch.setattr(files, "_GROWTH_LIMIT", 10**4)
    assert read(zeros)[1]["x"].size == 10**5


def test_an_entry_is_read_no_further_than_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory of the archive lies about a size: no more is unpacked."""
    path = sealed({"x.npy": npy(np.zeros(10**4))}, zipfile.ZIP_DEFLATED)(tmp_path / "lie")
    blob = bytearray(path.read_bytes())
    place = blob.rindex(b"PK\x01\x02")
    (size,) = struct.unpack_from("<I", blob, place + 24)
    struct.pack_into("<I", blob, place + 24, 100)
    assert size > 100
    path.write_bytes(bytes(blob))
    asked: list[int] = []
    honest = zipfile.ZipExtFile.read

    def note(self: Any, n: int = -1) -> bytes:
        asked.append(n)
        return honest(self, n)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", note)
    with pytest.raises(CertificateFileError):
        read(path)
    assert asked[-1] == 100


def test_the_hash_is_of_everything() -> None:
    base = digest({"a": 1}, {"x": b"1", "y": b"2"})
    assert base == digest({"a": 1}, {"y": b"2", "x": b"1"})
    for header, blobs in (
        ({"a": 2}, {"x": b"1", "y": b"2"}),
        ({"a": 1}, {"x": b"1", "y": b"3"}),
        ({"a": 1}, {"x": b"2", "y": b"1"}),
        ({"a": 1}, {"x": b"1", "z": b"2"}),
        ({"a": 1}, {"x": b"1"}),
    ):
        assert digest(header, blobs) != base
