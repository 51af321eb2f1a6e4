"""One objective, its data spread over processes: every rank holds a part of the sum."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.numerics.long_sum import LongSum
from goldstein.oracles import Oracle
from goldstein.torch.replicas import compare, reduce_sum, require_processes


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
        self.dim = part.dim
        self.knows_kinks = part.knows_kinks

    @property
    def name(self) -> str:
        return f"{self._part.name} over {dist.get_world_size()} processes"

    def value(self, x: Vector) -> float:
        self._same_point(x)
        total = _reduced(np.array([self._part.value(x)]))
        return float(total[0]) + 0.5 * float((self._ridge * x) @ x)

    def gradient(self, y: Vector) -> Vector:
        self._same_point(y)
        flag, gradient = 0.0, np.zeros(y.size)
        try:
            gradient = self._part.gradient(y)
        except KinkError:
            flag = 1.0
        # One exchange for both: a rank that raised alone would leave the others waiting.
        total = _reduced(np.append(gradient, flag))
        if total[-1]:
            raise KinkError("a part of the sum has a kink here.", y)
        answer: Vector = total[:-1] + self._ridge * y
        return answer

    @staticmethod
    def _same_point(x: Vector) -> None:
        compare({"the point of evaluation": hashlib.sha256(x.tobytes()).hexdigest()})


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
