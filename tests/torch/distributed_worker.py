"""Run by torchrun from test_torch_distributed.py: assertions that need two processes."""

from __future__ import annotations

import contextlib
import gc
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import goldstein.torch
from goldstein.errors import InputError, InputTypeError


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2)
    ).double()
    inputs = torch.randn(90, 5, dtype=torch.float64)
    labels = torch.randint(0, 2, (90,))
    batches = list(zip(inputs.split(7), labels.split(7), strict=True))
    loss_fn = torch.nn.CrossEntropyLoss()
    request = {"delta": 0.05, "max_calls": 60, "seed": 3}

    alone = goldstein.torch.certify(model, loss_fn, batches, **request)
    together = goldstein.torch.certify(
        model, loss_fn, batches[rank::world], distributed=True, **request
    )
    # Equal up to rounding: the terms were added in another order.
    assert together.eps == pytest.approx(alone.eps, rel=1e-6)
    assert together.delta == pytest.approx(alone.delta, rel=1e-6)
    everyone: list[object] = [None] * world
    dist.all_gather_object(everyone, together.content_digest())
    assert everyone == [everyone[0]] * world
    assert together.meta["samples"] == 90
    assert together.meta["processes"] == world
    whole = goldstein.torch.DataOracle(model, loss_fn, batches)
    assert together.verify(whole).ok
    spread = goldstein.torch.DataOracle(model, loss_fn, batches[rank::world], distributed=True)
    y = whole.start + 0.01
    assert spread.value(y) == pytest.approx(whole.value(y), rel=1e-14)
    np.testing.assert_allclose(spread.gradient(y), whole.gradient(y), rtol=0, atol=1e-15)

    # What is wrong with the data of one rank ends all of them, and nobody waits.
    def lopsided(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return output.square().sum() if rank == 1 else loss_fn(output, target)

    with pytest.raises(InputError, match="is the sum over its samples"):
        goldstein.torch.certify(model, lopsided, batches, distributed=True, **request)

    optimizer = goldstein.torch.PSINGD(model.parameters(), seed=0)
    goldstein.torch.check_replicas(model, optimizer)
    expect_desynchronised(
        lambda: goldstein.torch.check_replicas(
            model, goldstein.torch.PSINGD(model.parameters(), seed=rank)
        ),
        "seed",
    )
    if rank == 1:
        with torch.no_grad():
            model[2].bias[0] += 1e-15
    expect_desynchronised(lambda: goldstein.torch.check_replicas(model), "2.bias")
    expect_desynchronised(
        lambda: goldstein.torch.certify(
            model, loss_fn, batches[rank::world], distributed=True, **request
        ),
        "2.bias",
    )
    expect_sharded_models_to_train_and_to_be_refused()
    dist.destroy_process_group()
    expect_no_threads_of_the_group()
    with pytest.raises(InputError, match="init_process_group"):
        goldstein.torch.certify(model, loss_fn, batches, distributed=True, **request)
    print(f"rank {rank}: all good")


def expect_sharded_models_to_train_and_to_be_refused() -> None:
    """FSDP2: the steps of AdamO2NC are those of the whole model; `certify` says what to do."""

    def network() -> torch.nn.Module:
        torch.manual_seed(5)
        layers = [torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)]
        return torch.nn.Sequential(*layers).double()

    whole, sharded = network(), fully_shard(network(), mesh=init_device_mesh("cpu", (2,)))
    inputs = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for model in (whole, sharded):
        optimizer = goldstein.torch.AdamO2NC(model.parameters(), 0.05, weight_decay=0.1, seed=2)
        for _ in range(5):
            optimizer.zero_grad()
            model(inputs).abs().sum().backward()
            optimizer.step()
    for one, other in zip(whole.parameters(), sharded.parameters(), strict=True):
        torch.testing.assert_close(other.full_tensor(), one.detach(), rtol=0, atol=1e-12)
    with pytest.raises(InputTypeError, match="sharded"):
        goldstein.torch.certify(sharded, torch.nn.L1Loss(), [(inputs, inputs[:, :2])], delta=0.1)


def expect_desynchronised(call, word: str) -> None:
    with pytest.raises(goldstein.torch.DesynchronisedError, match=word) as caught:
        call()
    assert caught.value.ranks == [1]


def expect_no_threads_of_the_group() -> None:
    """A thread left behind aborts the process when it needs the interpreter during its exit."""
    gc.collect()  # the frames of the errors above
    deadline = time.monotonic() + 10.0  # the system lists a joined thread a moment longer
    while names := threads_of_the_group():
        assert time.monotonic() < deadline, names
        time.sleep(0.01)


def threads_of_the_group() -> list[str]:
    names = []
    for task in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            names.append(task.read_text().strip())
    return [name for name in names if "gloo" in name]


if __name__ == "__main__":
    main()
