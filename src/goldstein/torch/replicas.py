"""Several processes with one model each: reduce sums, and notice when the replicas differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.long_sum import LongSum
from goldstein.torch.vectors import digest

if dist.is_available():
    # Its functions take the world of the day they are imported as default argument. The first
    # optimizer imports it; were that after init_process_group, the group and its threads would
    # outlive destroy_process_group, and a thread that meets the interpreter's exit aborts it.
    import torch.distributed.nn.functional


class DesynchronisedError(GoldsteinError):
    """The replicas of a model differ between processes.

    Attributes
    ----------
    ranks : list of int
        The ranks that differ from rank 0.
    """

    def __init__(self, message: str, ranks: list[int]) -> None:
        super().__init__(message)
        self.ranks = ranks


def require_processes() -> None:
    """Refuse to work across processes before the process group exists."""
    if not (dist.is_available() and dist.is_initialized()):
        raise InputError(
            "distributed=True, but there is no process group; call "
            "torch.distributed.init_process_group first (torchrun sets the environment)."
        )


def check_replicas(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Raise `DesynchronisedError` unless all processes hold the same model, bit for bit.

    Every rank must call it. Parameters, buffers and, where given, the settings of the optimizer
    (its seed, step and learning rates) are compared with those of rank 0.

    Parameters
    ----------
    model : Module
        Plain or wrapped in DistributedDataParallel.
    optimizer : Optimizer, optional
        Its parameter groups' settings are compared as well.
    """
    require_processes()
    own = {name: digest([tensor]) for name, tensor in unwrap(model).state_dict().items()}
    if optimizer is not None:
        for index, group in enumerate(optimizer.param_groups):
            settings = {key: value for key, value in group.items() if key != "params"}
            for key, value in settings.items():
                own[f"optimizer group {index}, {key}"] = repr(value)
    compare(own)


def compare(own: Mapping[str, str]) -> None:
    """Compare named fingerprints between ranks and report the first difference."""
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, dict(own))
    differing = [rank for rank, other in enumerate(everyone) if other != everyone[0]]
    if not differing:
        return
    names = [
        name
        for name in everyone[0]
        if any(everyone[rank].get(name) != everyone[0][name] for rank in differing)
    ]
    where = names[0] if names else "the list of parameters"
    raise DesynchronisedError(
        f"the replicas differ: rank(s) {', '.join(map(str, differing))} disagree with rank 0, "
        f"first in {where} ({len(names)} entries differ). Give every rank the same seed and the "
        "same start, and let DistributedDataParallel reduce the gradients.",
        differing,
    )


def reduce_sum(own: LongSum, device: torch.device) -> NDArray[np.float64]:
    """Return the sum over all ranks, the same bits on each."""
    mine = torch.from_numpy(np.stack([own.high, own.low])).to(device)
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    total = LongSum(own.high.size)
    for high, low in (part.cpu().numpy() for part in everyone):
        total.add(high)
        total.low += low
    return total.total()


def agree_on_failure(own: Exception | None) -> None:
    """Raise on every rank if one of them failed: none may wait for the others."""
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, None if own is None else str(own))
    if own is not None:
        raise own
    for rank, message in enumerate(found):
        if message is not None:
            raise InputError(f"rank {rank}: {message}")


def require_whole(model: torch.nn.Module) -> None:
    """Refuse parameters of which every process holds a part."""
    for name, param in model.named_parameters():
        if hasattr(param, "full_tensor"):
            raise InputTypeError(
                f"the parameter {name} is sharded (DTensor; FSDP2 makes such). Certify a whole "
                "copy: load torch.distributed.checkpoint.state_dict.get_model_state_dict(model, "
                "options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=False)) into "
                "a model that is not sharded, on every rank, and pass distributed=True."
            )


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside DistributedDataParallel, or the module itself."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        inner: torch.nn.Module = model.module
        return inner
    return model
