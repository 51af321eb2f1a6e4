"""`pytest --goldstein-certificates DIR`: every proof and certificate in a folder is a test.

A proof file (.json, .json.gz) holds its function. A certificate (.cert) needs one:
`--goldstein-function module:name`, or `--goldstein-function PATTERN=module:name` for the files
whose name matches a pattern. The object is an Expression, an Oracle, or a pair (fun, jac).
"""

import importlib
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("goldstein")
    group.addoption(
        "--goldstein-certificates", metavar="DIR", action="append", default=[],
        help="verify all proof files (.json, .json.gz) and certificates (.cert) below DIR",
    )  # fmt: skip
    group.addoption(
        "--goldstein-function", metavar="[PATTERN=]MODULE:NAME", action="append", default=[],
        help="the function that certificates are about",
    )  # fmt: skip


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Append a test for every file."""
    for name in session.config.getoption("--goldstein-certificates"):
        folder = Path(name)
        if not folder.is_dir():
            raise pytest.UsageError(f"--goldstein-certificates {name}: no such folder")
        files = sorted(
            p for p in folder.rglob("*") if p.name.endswith((".json", ".json.gz", ".cert"))
        )
        for path in files:
            if path.suffix == ".cert" or _is_proof(path):
                items.append(Claim.from_parent(session, name=str(path), path=path))


def _is_proof(path: Path) -> bool:
    import gzip

    try:
        raw = path.read_bytes()
        head = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError):
        return False
    return b'"goldstein-proof"' in head[:200]


class Claim(pytest.Item):
    """One claim, decided anew."""

    def runtest(self) -> None:
        """Decide a proof file by itself, a certificate with its function."""
        if self.path.suffix != ".cert":
            from goldstein.storage.bundle import decide

            verdict, said = decide(self.path)
            if verdict != "TRUE":
                raise NotProved(f"{verdict}: {said}")
            return
        from goldstein.certificates import load_certificate

        found = load_certificate(self.path).verify(*_function(self.config, self.path))
        if not found.ok:
            wrong = [f"{c.name}: {c.message}" for c in found.checks if not c.ok]
            raise NotProved("; ".join(wrong))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show the reason alone."""
        if excinfo.errisinstance(NotProved):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the file."""
        return self.path, None, f"claim in {self.path.name}"


class NotProved(Exception):
    """The claim does not hold."""


def _function(config: pytest.Config, path: Path) -> tuple[Any, ...]:
    where = str(config.invocation_params.dir)
    if where not in sys.path:  # `pytest` looks there only as `python -m pytest`
        sys.path.append(where)
    for option in config.getoption("--goldstein-function"):
        pattern, equals, named = option.rpartition("=")
        if not equals or fnmatch(path.name, pattern):
            module, colon, name = named.partition(":")
            if not colon:
                raise NotProved(f"--goldstein-function {option}: expected MODULE:NAME")
            found = getattr(importlib.import_module(module), name)
            return found if isinstance(found, tuple) else (found,)
    raise NotProved(f"{path.name} is about a function: name it, --goldstein-function MODULE:NAME")
