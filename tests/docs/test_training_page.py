"""The code of docs/training.md runs as it is printed, with a model and data around it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs

torch = pytest.importorskip("torch")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def block(word: str) -> str:
    """Return the one block that holds this word."""
    (found,) = [code for code in BLOCKS if word in code]
    return found


def run(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "training.md", "exec"), names)
    return printed.getvalue()


def test_a_model_is_trained_certified_and_verified() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(90, 4)
    targets = (inputs[:, 0] > 0).long()
    data = [(inputs[i : i + 30], targets[i : i + 30]) for i in (0, 30, 60)]
    names = {
        "torch": torch, "data": data, "steps": 60, "batches": 20 * data,
        "model": torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)),
        "loss_fn": torch.nn.CrossEntropyLoss(),
    }  # fmt: skip
    printed = run(block("O2NC"), names)
    assert printed.startswith("VERIFIED")
    assert names["certificate"].delta <= 0.01


def test_a_function_of_a_dict_of_tensors() -> None:
    import goldstein.torch

    matrix = torch.outer(torch.arange(1.0, 5), torch.arange(1.0, 4))
    names: dict[str, Any] = {"gs": gs, "goldstein": goldstein, "torch": torch, "M": matrix}
    run(block("misfit"), names)
    assert names["res"].success


def test_a_jax_model() -> None:
    jax = pytest.importorskip("jax")
    import goldstein.jax

    def loss(params: Any, batch: Any) -> Any:
        inputs, targets = batch
        return jax.numpy.abs(inputs @ params - targets).mean()

    optimizer = goldstein.jax.psingd(0.1)
    params = jax.numpy.ones(3)
    names = {
        "goldstein": goldstein, "loss": loss, "params": params, "state": optimizer.init(params),
        "batches": [(np.eye(3), np.zeros(3))],
    }  # fmt: skip
    run(block("goldstein.jax.certify"), names)
    assert names["certificate"].eps > 0
