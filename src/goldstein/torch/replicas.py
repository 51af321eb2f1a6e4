"""Several processes: sums over them, and models and points that must be the same on each."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike, NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import GoldsteinError, InputError, InputTypeError, KinkError
from goldstein.numerics.exact import LongSum
from goldstein.oracles import Oracle

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


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Return a fingerprint of all bits."""
    seen = hashlib.sha256()
    for tensor in tensors:
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        seen.update(raw.numpy().tobytes())
    return seen.hexdigest()


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


def require_same_point(x: Vector) -> None:
    """Refuse ranks that ask at different points."""
    compare({"the point of evaluation": hashlib.sha256(x.tobytes()).hexdigest()})


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
        return model.module
    return model


class RankSum(Oracle):
    """The sum over ranks of one function each, plus a ridge term that is counted once.

    Every rank asks the same questions in the same order, as `goldstein.minimize` with the same seed
    does by itself; points are compared, and every rank gets the same bits. A kink on one rank is a
    kink on all.
    """

    def __init__(self, part: Oracle, ridge: ArrayLike = 0.0) -> None:
        if not isinstance(part, Oracle):
            raise InputTypeError(
                f"part is {type(part).__name__}, expected an Oracle: a model, an expression, or "
                "goldstein.torch.oracle(...)."
            )
        require_processes()
        if part.dim is None:
            raise InputError("part has no fixed number of variables; wrap it in one that has.")
        self._ridge: Vector = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (part.dim,))
        if not (np.isfinite(self._ridge).all() and (self._ridge >= 0).all()):
            raise InputError(f"ridge must be nonnegative and finite, got {ridge!r}.")
        compare({"the number of variables": str(part.dim), "ridge": repr(self._ridge.tolist())})
        self._part = part
        self._name = f"{part.name} over {dist.get_world_size()} processes"
        self.dim = part.dim
        self.knows_kinks = part.knows_kinks

    def value(self, x: Vector) -> float:
        require_same_point(x)
        total = _reduced(np.array([self._part.value(x)]))
        return float(total[0]) + 0.5 * float((self._ridge * x) @ x)

    def gradient(self, y: Vector) -> Vector:
        require_same_point(y)
        flag, gradient = 0.0, np.zeros(y.size)
        try:
            gradient = self._part.gradient(y)
        except KinkError:
            flag = 1.0
        # One exchange for both: a rank that raised alone would leave the others waiting.
        total = _reduced(np.append(gradient, flag))
        if total[-1]:
            raise KinkError("a part of the sum has a kink here.", y)
        return total[:-1] + self._ridge * y


def _reduced(own: Vector) -> Vector:
    total = LongSum(own.size)
    total.add(own)
    return reduce_sum(total, torch.device("cpu"))


def sum_over_ranks(part: Oracle, ridge: ArrayLike = 0.0) -> RankSum:
    """Make one objective of the parts that the processes hold.

    Call it on every rank, then `goldstein.minimize` or `goldstein.certify` with the same start and
    the same seed: every rank makes the same steps and gets the same certificate, that of all data.

    Parameters
    ----------
    part : Oracle
        This rank's share of the sum, for example `goldstein.models.relu_two_layer` or `margin_svm`
        on its own rows, weighted by 1 / (number of all rows) and without a ridge term.
    ridge : float or array
        Weight of |x|^2 / 2, or one weight per variable; counted once, not once per rank.

    Returns
    -------
    RankSum

    Examples
    --------
    On every rank::

        share = 1.0 / total_rows * np.ones(len(my_y))
        part = gs.models.relu_two_layer(my_X, my_y, width=16, weights=share)
        objective = goldstein.torch.sum_over_ranks(part, ridge=1e-3)
        gs.minimize(objective, part.start(0), eps=1e-2, delta=1e-2, rng=0)
    """
    return RankSum(part, ridge)
