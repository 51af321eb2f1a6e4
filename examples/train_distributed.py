"""Train a ReLU network on several processes, then certify it on all the data.

    torchrun --nproc-per-node 2 examples/train_distributed.py --steps 200 --delta 0.01
    python examples/train_distributed.py                       # the same run in one process

Every process takes its share of each global batch; DistributedDataParallel averages the gradients
and the optimizer draws from (seed, step), so all replicas make the same step. The certificate is
that of the whole data set: each process visits its own share and the sums are reduced.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel

import goldstein.torch

OPTIMIZERS = {
    "psingd": goldstein.torch.PSINGD,
    "o2nc": goldstein.torch.O2NC,
    "adam-o2nc": goldstein.torch.AdamO2NC,
}


def digits(samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first samples of the digits, scaled to [0, 1], in float64."""
    inputs, labels = load_digits(return_X_y=True)
    return torch.tensor(inputs[:samples]) / 16.0, torch.tensor(labels[:samples])


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 12), torch.nn.ReLU(), torch.nn.Linear(12, 10)]
    return torch.nn.Sequential(*layers).double()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--optimizer", choices=sorted(OPTIMIZERS), default="o2nc")
    parser.add_argument("--samples", type=int, default=480)
    parser.add_argument("--batch", type=int, default=48, help="samples per step over all processes")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--delta", type=float, default=0.01)
    parser.add_argument("--max-calls", type=int, default=60)
    parser.add_argument("--out", type=Path, help="write losses and certificate to this JSON file")
    options = parser.parse_args()

    # torchrun sets WORLD_SIZE; without it this is an ordinary single-process run.
    distributed = "WORLD_SIZE" in os.environ
    if distributed:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank() if distributed else 0
    world = dist.get_world_size() if distributed else 1

    inputs, labels = digits(options.samples)
    model = network()
    replica = DistributedDataParallel(model) if distributed else model
    optimizer = OPTIMIZERS[options.optimizer](
        model.parameters(), seed=0
    )  # the same seed everywhere
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=options.steps)
    loss_fn = torch.nn.CrossEntropyLoss()

    losses = []
    order = torch.Generator().manual_seed(1)  # the same batches in every process
    for _ in range(options.steps):
        batch = torch.randperm(options.samples, generator=order)[: options.batch]
        mine = batch[rank::world]
        optimizer.zero_grad()
        loss = loss_fn(replica(inputs[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        scheduler.step()
        shown = loss.detach() * len(mine)
        if distributed:
            dist.all_reduce(shown)
        losses.append(float(shown) / options.batch)

    if distributed:
        goldstein.torch.check_replicas(model, optimizer)
    with optimizer.at_center():
        shares = list(zip(inputs.split(16), labels.split(16), strict=True))
        certificate = goldstein.torch.certify(
            model, loss_fn, shares[rank::world], delta=options.delta,
            max_calls=options.max_calls, distributed=distributed,
        )  # fmt: skip
    if rank == 0:
        print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; {certificate.summary()}")
        print(f"{certificate.meta['samples']} samples, {certificate.meta['processes']} process(es)")
        if options.out is not None:
            report = {
                "losses": losses, "eps": certificate.eps, "delta": certificate.delta,
                "x": certificate.x.tolist(), "weights": certificate.weights.tolist(),
                "meta": certificate.meta,
            }  # fmt: skip
            options.out.write_text(json.dumps(report))
    if distributed:
        # The wrapper must not outlive the group: as its last owner it waits, with the interpreter's
        # lock, for a thread of Gloo that wants the lock.
        del replica
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
