"""Without an optional package, the part that needs it says which extra to install, and how."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Part of the library, the package that is hidden, the extra that brings it, its name there.
PARTS = [
    ("torch", "torch", "torch", "torch"),
    ("jax", "jax", "jax", "jax"),
    ("jax", "optax", "jax", "optax"),
    ("sklearn", "sklearn", "sklearn", "scikit-learn"),
    ("parallel", "joblib", "parallel", "joblib"),
]


@pytest.mark.parametrize(("part", "package", "extra", "requirement"), PARTS)
def test_a_missing_package_is_explained(
    part: str, package: str, extra: str, requirement: str
) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; import goldstein.{part}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingExtraError" in last
    assert f'pip install ".[{extra}]"' in last
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert any(line.startswith(requirement) for line in extras[extra])
