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
    printed = run(block("AdamO2NC(model"), names)
    assert printed.startswith("VERIFIED")
    assert names["certificate"].delta <= 0.01


def test_a_run_is_watched(tmp_path: Path) -> None:
    import goldstein.torch

    torch.manual_seed(0)
    model, loss_fn = torch.nn.Linear(3, 2), torch.nn.CrossEntropyLoss()
    optimizer = goldstein.torch.AdamO2NC(model.parameters(), 0.01)
    data = [(torch.randn(20, 3), torch.randint(0, 2, (20,))) for _ in range(3)]

    def train_one_epoch() -> None:
        for inputs, targets in data:
            optimizer.zero_grad()
            loss_fn(model(inputs), targets).backward()
            optimizer.step()

    names = {
        "goldstein": goldstein, "model": model, "loss_fn": loss_fn, "data": data, "epochs": 3,
        "optimizer": optimizer, "train_one_epoch": train_one_epoch,
        "history_file": tmp_path / "history.json",
    }  # fmt: skip
    assert run(block("monitor.update"), names).startswith("epoch 0: loss")
    assert (tmp_path / "history.json").exists()


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
