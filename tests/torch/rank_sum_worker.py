"""Run by torchrun from test_torch_rank_sum.py: fits whose rows are spread over two processes."""

from __future__ import annotations

import numpy as np
import pytest
import torch.distributed as dist

import goldstein as gs
import goldstein.torch
from goldstein.errors import InputError, InputTypeError, KinkError

ROWS = 700


def main() -> None:
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 4))
    y = np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(ROWS)
    mine = slice(0, 260) if rank == 0 else slice(260, ROWS)
    share = np.full(ROWS, 1.0 / ROWS)

    for loss, target in (("squared", y), ("logistic", (y > 0.7).astype(int))):
        options = {"loss": loss, "output_bias": True}
        part = gs.models.relu_two_layer(X[mine], target[mine], 5, weights=share[mine], **options)
        whole = gs.models.relu_two_layer(X, target, 5, mean=True, ridge=1e-3, **options)
        check_fit(goldstein.torch.sum_over_ranks(part, ridge=1e-3), whole, part.start(0))

    signs = np.where(y > 0.7, 1.0, -1.0)
    Z = np.column_stack([X, np.ones(ROWS)]) * signs[:, None]
    part = gs.models.margin_svm(Z[mine], 1.0, 0.0, weights=share[mine])
    whole = gs.models.margin_svm(Z, 1.0, 1e-2, weights=share, intercept=True)
    ridge = np.array([1e-2] * 4 + [0.0])
    check_fit(goldstein.torch.sum_over_ranks(part, ridge), whole, np.full(5, 0.1))

    # A kink of one rank's rows is a kink for all, and nobody waits.
    corner = gs.sum(gs.calculus.abs(gs.Variable(1) - (0.0 if rank == 0 else 5.0)))
    both = goldstein.torch.sum_over_ranks(corner)
    with pytest.raises(KinkError):
        both.gradient(np.zeros(1))
    assert both.gradient(np.ones(1)).tolist() == [0.0]
    assert both.value(np.ones(1)) == 5.0

    with pytest.raises(goldstein.torch.DesynchronisedError, match="point of evaluation"):
        both.value(np.array([float(rank)]))
    with pytest.raises(goldstein.torch.DesynchronisedError, match="number of variables"):
        goldstein.torch.sum_over_ranks(gs.sum(gs.Variable(1 + rank)))
    with pytest.raises(InputTypeError, match="Oracle"):
        goldstein.torch.sum_over_ranks(lambda x: 0.0)
    with pytest.raises(InputError, match="ridge"):
        goldstein.torch.sum_over_ranks(corner, ridge=-1.0)
    assert world == 2
    dist.destroy_process_group()
    with pytest.raises(InputError, match="init_process_group"):
        goldstein.torch.sum_over_ranks(corner)
    print(f"rank {rank}: all good")


def check_fit(spread: goldstein.torch.RankSum, whole: gs.Expression, start: np.ndarray) -> None:
    """The fit over ranks is that of one process, up to the order of the sums."""
    for shift in (0.0, 0.1):
        x = start + shift
        assert spread.value(x) == pytest.approx(whole.value(x), rel=1e-13)
        np.testing.assert_allclose(spread.gradient(x), whole.gradient(x), rtol=1e-10, atol=1e-14)
    request = {"eps": 1e-2, "delta": 1e-2, "rng": 0}
    together = gs.minimize(spread, start, **request)
    # A formula is proved without the values that a black box is asked for; the spread one is none.
    alone = gs.minimize(whole.value, start, whole.gradient, **request)
    assert together.success
    assert alone.success
    assert together.fun == pytest.approx(alone.fun, rel=1e-6)
    np.testing.assert_allclose(together.x, alone.x, atol=1e-4)
    assert together.certificate.eps == pytest.approx(alone.certificate.eps, rel=1e-3, abs=1e-8)
    # The certificate of the spread fit holds for the data in one place.
    assert together.certificate.verify(whole).ok
    everyone: list[object] = [None, None]
    dist.all_gather_object(everyone, together.certificate.content_digest())
    assert everyone[0] == everyone[1]


if __name__ == "__main__":
    main()
