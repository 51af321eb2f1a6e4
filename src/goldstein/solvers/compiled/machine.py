"""The machine code of the search: where it is kept, who makes it, and whether runs choose it.

Loading it takes llvmlite alone and some hundredths of a second; making it takes Numba, in a process
of its own, and half a minute.
"""

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import goldstein.solvers
from goldstein.extras import missing_extra
from goldstein.numerics import streams
from goldstein.storage.files import replacing

#: Set to a folder, it is the only place where machine code is looked for and kept.
FOLDER_VARIABLE = "GOLDSTEIN_CACHE_DIR"

#: The file that says that `auto` is to be compiled where it can be.
_WISH = "search.automatic"

Unit = Callable[[int], int]


class Machine:
    """The units of the search, ready to be called with addresses."""

    #: Searches on, and returns why it came back. The second keeps the lock of the interpreter.
    stretch: Unit
    stretch_asking: Unit
    begin: Unit
    learn_refuted: Unit
    aim_again: Unit
    last: Unit
    minimise: Unit

    def __init__(self, code: bytes) -> None:
        import llvmlite.binding as llvm

        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, target_machine())  # owns the code
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        free, locked = (
            kind(ctypes.c_int64, ctypes.c_int64) for kind in (ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE)
        )
        address = self._engine.get_function_address
        for name in ("stretch", "begin", "learn_refuted", "aim_again", "last", "minimise"):
            setattr(self, name, free(address(f"goldstein_{name}")))
        self.stretch_asking = locked(address("goldstein_stretch"))


@cache
def machine() -> Machine:
    """Return the compiled search; where it is not at hand it is made, which takes its time."""
    return Machine(_stored() or _made())


def warm_up(automatic: bool = True) -> bool:
    """Compile the search for this machine, and let `auto` be compiled by itself from now on.

    Until then, and again after an upgrade, `auto` runs interpreted: what a seed leads to never
    depends on what happens to be compiled.

    Parameters
    ----------
    automatic : bool
        False takes the choice back; what is compiled stays.

    Returns
    -------
    bool
        Whether runs of `auto` are compiled by themselves now.

    Examples
    --------
    >>> from goldstein.solvers.compiled import warm_up
    >>> warm_up(automatic=False)
    False
    """
    chosen.cache_clear()
    if automatic:
        machine()
        _keep(_WISH, b"goldstein warm-up\n")
    else:
        for folder in _folders():
            with contextlib.suppress(FileNotFoundError):
                (folder / _WISH).unlink()
    return chosen()


@cache
def chosen() -> bool:
    """Has somebody wished for compiled runs, and is the code there?"""
    return any((folder / _WISH).exists() for folder in _folders()) and _stored() is not None


def target_machine() -> Any:
    """Return LLVM's idea of this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
    )


def _stored() -> bytes | None:
    try:
        name = _name()
    except ImportError:
        return None
    for folder in _folders():
        with contextlib.suppress(OSError):
            return (folder / name).read_bytes()
    return None


def _made() -> bytes:
    """Compile, and keep what comes of it."""
    if any(importlib.util.find_spec(package) is None for package in ("llvmlite", "numba")):
        raise missing_extra("compiled=True", "Numba", "fast")
    name = _name()
    print(
        "goldstein: compiling the search, once for this machine; this takes about half a minute.",
        file=sys.stderr,
        flush=True,
    )
    code = _compile(name)
    _keep(name, code)
    return code


def _compile(name: str) -> bytes:
    """Compile in another process: Numba stays out of this one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        subprocess.run(
            [sys.executable, "-m", "goldstein.solvers.compiled.build", str(path)],
            env={**os.environ, "NUMBA_OPT": "0", "PYTHONHASHSEED": "0",
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            check=True,
        )  # fmt: skip
        return path.read_bytes()


def _keep(name: str, content: bytes) -> None:
    """Write a file to the first folder that takes it, at once or not at all."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / name) as file:
                file.write(content)
            return


def _folders() -> Iterator[Path]:
    """Next to the package, or with the user's other caches."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        yield Path(given)
        return
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    yield Path(os.path.expanduser(home)) / "goldstein"


@cache
def _name() -> str:
    """The name of the code: a digest of all that it is made of and made for."""
    import llvmlite
    import llvmlite.binding as llvm

    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.read_bytes())
    makers = llvmlite.__version__, llvm.get_process_triple(), llvm.get_host_cpu_name()
    digest.update(repr((*makers, llvm.get_host_cpu_features().flatten())).encode())
    return f"search-{digest.hexdigest()[:32]}.o"


def _sources() -> list[Path]:
    """Return all files that are compiled, or say how."""
    solvers = Path(goldstein.solvers.__file__).parent
    others = {"__init__.py", "binding.py", "solver.py"}
    own = [path for path in solvers.glob("compiled/*.py") if path.name not in others]
    own += solvers.glob("logic/*.py")
    shared = [solvers / "tuning.py", solvers / "ball_state.py", Path(streams.__file__)]
    return sorted(own) + shared
