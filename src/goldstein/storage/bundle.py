"""A run, its proof and its report in one zip file; and the verdict of `goldstein-check`."""

import contextlib
import io
import tempfile
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import goldstein_check
from goldstein.errors import InputError
from goldstein.storage.files import replacing
from goldstein.storage.records import CERTIFICATE, HISTORY, RESULT

PROOF, REPORT = "proof.json", "report.html"
#: What a bundle may hold, and how large one of its files may be.
_PARTS, _MOST = (RESULT, CERTIFICATE, HISTORY, PROOF, REPORT), 2**28


def proof_number(text: str) -> Fraction:
    """Return a number of a proof file."""
    return goldstein_check.number(text)  # type: ignore[no-untyped-call]


def decide(path: Path) -> tuple[str, str]:
    """Return the verdict about a proof file, and the sentence that goes with it."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        goldstein_check.main([str(path)])  # type: ignore[no-untyped-call]
    verdict, _, rest = said.getvalue().partition(": ")
    return verdict, rest.partition("\n")[0]


def write_bundle(folder: Path, target: Path) -> list[str]:
    """Put the files of a run into one zip file; return their names."""
    names = [name for name in _PARTS if (folder / name).is_file()]
    if RESULT not in names:
        raise InputError(f"{folder} holds no {RESULT}: not a run.")
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in names:  # without times: the same run makes the same file
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            bundle.writestr(entry, (folder / name).read_bytes())
    return names


@contextlib.contextmanager
def opened_bundle(path: Path) -> Iterator[Path]:
    """Unpack a bundle, which may be a stranger's, into a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="goldstein-") as folder:
        try:
            with zipfile.ZipFile(path) as bundle:
                entries = bundle.infolist()
                names = [entry.filename for entry in entries]
                if len(set(names)) < len(names) or set(names) - set(_PARTS) or RESULT not in names:
                    raise InputError(f"{path} is no bundle of a run: it holds {sorted(names)[:8]}.")
                if any(entry.file_size > _MOST for entry in entries):
                    raise InputError(f"{path} holds a file of more than {_MOST} bytes.")
                for entry in entries:
                    (Path(folder) / entry.filename).write_bytes(bundle.read(entry))
        except (zipfile.BadZipFile, OSError, RuntimeError, EOFError) as failure:
            raise InputError(f"{path} cannot be unpacked ({failure}).") from failure
        yield Path(folder)
