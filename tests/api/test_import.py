"""`import goldstein` is light, and every public name is there."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import goldstein as gs

FORBIDDEN = ["torch", "jax", "sklearn", "matplotlib", "rich", "typer", "optax", "joblib", "dask"]


#: Files are compiled once, as those of an installed package are, whatever this process was told.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def python(code: str) -> str:
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    return ran.stdout.strip()


def test_no_optional_package_is_imported() -> None:
    code = (
        "import sys, numpy as np, goldstein as gs\n"
        "gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, eps=.1, delta=.1, rng=0)\n"
        "[getattr(gs, name) for name in gs.__all__]\n"
        f"print([m for m in {FORBIDDEN} if m in sys.modules])"
    )
    assert python(code) == "[]"


def test_the_import_takes_no_longer_than_scipys_optimizer() -> None:
    def seconds(module: str) -> float:
        # CPU time: the wall clock would measure what else the machine is doing.
        clock = (
            f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"
        )
        return float(python(clock))

    # In turns: what slows one down slows the others down, too.
    modules = ["goldstein", "goldstein.api", "scipy.optimize"]
    own, working, scipys = (
        min(times) for times in zip(*([*map(seconds, modules)] for _ in "12345"))
    )
    assert own < 1.5 * scipys
    # The working parts contain scipy.optimize; their own files must not cost as much again.
    assert working < 2.0 * scipys


def test_a_plain_run_does_not_load_the_calculus() -> None:
    code = (
        "import sys, numpy as np, goldstein as gs\n"
        "f, bounds = lambda x: abs(x[0]), [(-1, 2)]\n"
        "gs.minimize(f, [1.0], np.sign, eps=.1, delta=.1, rng=0)\n"
        "gs.minimize(f, [1.0], np.sign, eps=.1, delta=.1, rng=0, bounds=bounds)\n"
        "print('goldstein.calculus' in sys.modules)"
    )
    assert python(code) == "False"


def test_every_public_name_resolves() -> None:
    for name in gs.__all__:
        assert getattr(gs, name) is not None
    assert set(gs.__all__) <= set(dir(gs))
    promised = "minimize certify Result load_certificate Oracle Variable relu norm1 KinkError"
    assert set(promised.split()) <= set(gs.__all__)
    assert len(gs.__all__) <= 60


def test_what_is_not_listed_is_found_and_listed_in_its_module() -> None:
    """A rare atom, a certificate, an error or a solver has two spellings of one thing."""
    for module in (gs.atoms, gs.certificates, gs.errors, gs.solvers):
        for name in set(module.__all__) & set(gs._WHERE):
            assert getattr(gs, name) is getattr(module, name)
    assert {"mcp", "relu", "norm2"} <= set(dir(gs.atoms))
    assert "GoldsteinCertificate" in gs.certificates.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(gs, "maximise")


def test_editors_see_the_names_that_are_resolved_on_first_use() -> None:
    stub = ast.parse(Path(gs.__file__).with_name("__init__.pyi").read_text())
    static = {
        (node.module, name.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    lazy = {(module, name) for module, names in gs._NAMES.items() for name in names}
    assert static == lazy | {("goldstein", name) for name in gs._MODULES}
    for _, name in lazy:
        assert getattr(gs, name) is not None


def test_the_ways_in_are_found_without_an_import_of_their_own() -> None:
    """As `gs.parallel.multistart`, where somebody wrote `import goldstein as gs` and no more."""
    code = (
        "import goldstein as gs\n"
        "names = 'control cvxpy jax onnx parallel scipy sklearn torch'.split()\n"
        "print([getattr(gs, name).__name__ for name in names])"
    )
    found = ast.literal_eval(python(code))
    assert found == [f"goldstein.{name}" for name in gs._ECOSYSTEMS]
