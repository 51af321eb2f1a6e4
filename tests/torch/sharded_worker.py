"""Run by torchrun from test_torch_distributed.py: parameters of which each process holds a part."""

from __future__ import annotations

import os

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import goldstein.torch
from goldstein.errors import InputTypeError


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


if __name__ == "__main__":
    dist.init_process_group("gloo")
    expect_sharded_models_to_train_and_to_be_refused()
    dist.destroy_process_group()
    print("all good", flush=True)
    # The mesh keeps threads of the group, which may abort an interpreter that ends.
    os._exit(0)
