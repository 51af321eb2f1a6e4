"""The callbacks in the real packages: Lightning, and Hugging Face's Trainer."""

from __future__ import annotations

import logging
import math
import warnings

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import goldstein.torch

LOSS = torch.nn.CrossEntropyLoss()


def data(samples: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    inputs = torch.randn(samples, 6)
    return inputs, (inputs[:, 0] > 0).long()


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lightning.pytorch as pl
        from lightning.pytorch.loggers import CSVLogger

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    loader = DataLoader(TensorDataset(*data()), batch_size=16)

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def training_step(self, batch, _):
            return LOSS(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return goldstein.torch.AdamO2NC(self.parameters(), 0.02)

    module = Module()
    monitor = goldstein.torch.Monitor(
        module.net, LOSS, loader, delta=1e-3, share=math.inf, certified=False,
        stopping=goldstein.torch.GoldsteinStopping(100.0, patience=3),  # any gradient will do
    )  # fmt: skip
    trainer = pl.Trainer(
        max_epochs=10, accelerator="cpu", logger=CSVLogger(tmp_path), enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, log_every_n_steps=1,
        callbacks=[goldstein.torch.LightningMonitor(monitor)],
    )  # fmt: skip
    trainer.fit(module, loader)
    assert [seen.epoch for seen in monitor.history] == [0, 1, 2, 3]
    assert trainer.current_epoch == 4  # stopped: three looks in a row with a lower loss
    assert isinstance(monitor.optimizer, goldstein.torch.AdamO2NC)
    assert monitor.history[-1].loss < monitor.history[0].loss
    trainer.logger.save()
    (table,) = tmp_path.rglob("metrics.csv")
    assert "goldstein/relative_eps" in table.read_text()


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_trainer(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    inputs, labels = data()
    rows = [{"inputs": x, "labels": y} for x, y in zip(inputs, labels, strict=True)]

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, inputs, labels=None):
            logits = self.net(inputs)
            return {"loss": LOSS(logits, labels), "logits": logits}

    model = Model()
    optimizer = goldstein.torch.AdamO2NC(model.parameters(), 0.02)
    monitor = goldstein.torch.Monitor(
        model, lambda output, batch: output["loss"], DataLoader(rows, batch_size=16), delta=1e-3,
        share=math.inf, certified=False,
        stopping=goldstein.torch.GoldsteinStopping(100.0, patience=2),
    )  # fmt: skip
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=6, per_device_train_batch_size=16,
        report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, logging_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows,
        optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)),
        callbacks=[goldstein.torch.TrainerMonitor(monitor)],
    )  # fmt: skip
    trainer.train()
    assert [seen.epoch for seen in monitor.history] == [1, 2, 3]
    assert trainer.state.epoch == 3.0  # stopped
    assert monitor.optimizer is optimizer
    assert sum("goldstein/eps" in entry for entry in trainer.state.log_history) == 3
