"""What is meant to differ from other projects' conventions, each with its reason.

A test fails when a deviation has gone: then the list is out of date.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import OptimizeWarning, minimize
from torch.optim.lr_scheduler import OneCycleLR

import goldstein as gs
import goldstein.torch as gt
from goldstein.scipy import method


def test_a_callback_that_returns_true_stops_the_run() -> None:
    """SciPy's trust-constr stops, its other methods go on; `goldstein.minimize` stops."""
    res = minimize(
        lambda x: abs(x).sum(), [3.0, 1.0], jac=np.sign, method=method, callback=lambda x: True
    )
    assert res.status == 99
    assert res.nit == 1


def test_success_is_a_proof_and_not_a_small_step() -> None:
    """SciPy's methods end with success where a step is small; ours where the certificate is."""
    res = minimize(
        lambda x: abs(x).sum(), [3.0, 1.0], jac=np.sign, method=method, options={"maxfev": 5}
    )
    assert (not res.success and res.certificate is None) or res.certificate.eps > 1e-5


def test_a_wrong_gradient_is_said() -> None:
    """SciPy's methods believe the Jacobian; ours compare it with differences."""
    res = minimize(lambda x: x @ x, [3.0, 1.0], jac=lambda x: -x, method=method)
    assert not res.success
    assert "gradient" in res.message


def test_tolerances_of_values_are_no_options() -> None:
    """`ftol` is about steps of f, which say nothing about a function with kinks."""
    with pytest.warns(OptimizeWarning, match="ftol"):
        minimize(
            lambda x: abs(x).sum(), [3.0, 1.0], jac=np.sign, method=method, options={"ftol": 1e-3}
        )


@pytest.mark.parametrize("kind", [gt.O2NC, gt.PSINGD])
def test_one_cycle_has_no_momentum_to_cycle(kind) -> None:
    """As with `torch.optim.Adagrad`: pass cycle_momentum=False."""
    w = torch.nn.Parameter(torch.zeros(2))
    for other in (torch.optim.Adagrad([w]), kind([w])):
        with pytest.raises(ValueError, match="momentum"):
            OneCycleLR(other, max_lr=0.1, total_steps=10)


def test_groups_share_everything_but_the_learning_rate() -> None:
    """The method takes one step in all parameters together: its norm is that of all of them."""
    a, b = torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(gs.errors.InputError, match="only lr may differ"):
        gt.O2NC([{"params": [a]}, {"params": [b], "radius": 1.0}])


def test_parameters_hold_the_query_point_between_steps() -> None:
    """The gradient belongs to a random point of the step; `at_center` shows the iterate."""
    w = torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    optimizer = gt.O2NC([w], radius=0.1)
    w.abs().sum().backward()
    optimizer.step()
    query = w.detach().clone()
    with optimizer.at_center():
        assert not torch.equal(query, w)
    assert torch.equal(query, w)
