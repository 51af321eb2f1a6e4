"""What `torch.optim` promises of its optimizers holds of ours."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR

import goldstein as gs
import goldstein.torch as gt

OPTIMIZERS = {
    "O2NC": lambda params, **more: gt.O2NC(params, radius=0.1, **more),
    "PSINGD": lambda params, **more: gt.PSINGD(params, lr=0.1, **more),
    "AdamO2NC": lambda params, **more: gt.AdamO2NC(params, lr=0.05, **more),
}


@pytest.fixture(params=OPTIMIZERS)
def make(request):
    return OPTIMIZERS[request.param]


def parameter(dtype=torch.float64):
    return torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=dtype))


def train(optimizer, w, steps: int, sign: float = 1.0, scheduler=None) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        (sign * w.abs().sum()).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def test_maximize_is_descent_of_the_negative(make) -> None:
    up, down = parameter(), parameter()
    train(make([up], maximize=True), up, 10)
    train(make([down]), down, 10, sign=-1.0)
    assert torch.equal(up, down)
    assert up.abs().sum() > 5.0


def test_schedulers_act_on_the_step(make) -> None:
    moved = []
    for kind in (
        lambda o: LambdaLR(o, lambda epoch: 0.0),
        lambda o: CosineAnnealingLR(o, 10),
        lambda o: OneCycleLR(o, max_lr=0.1, total_steps=20, cycle_momentum=False),
    ):
        w = parameter()
        optimizer = make([w])
        before = w.detach().clone()
        train(optimizer, w, 10, scheduler=kind(optimizer))
        moved.append(float((w.detach() - before).norm()))
    assert moved[0] < min(moved[1:])


def test_a_saved_state_goes_on_where_it_was(make) -> None:
    w = parameter()
    optimizer = make([w])
    train(optimizer, w, 7)
    other = torch.nn.Parameter(w.detach().clone())
    again = make([other])
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(optimizer, w, 5)
    train(again, other, 5)
    assert torch.equal(w, other)


def test_a_parameter_without_a_gradient_stays(make) -> None:
    w, idle = parameter(), parameter()
    train(make([w, idle]), w, 5)
    assert torch.equal(idle, parameter())
    assert not torch.equal(w, parameter())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_coarser_parameters_are_trained_too(make, dtype) -> None:
    w = parameter(dtype)
    optimizer = make([w])
    train(optimizer, w, 150)
    with optimizer.at_center():
        assert w.dtype is dtype
        assert w.abs().sum() < 2.0


def test_complex_parameters_are_refused(make) -> None:
    with pytest.raises(gs.errors.InputTypeError, match="real"):
        make([torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))])


def test_torch_compile_takes_the_same_steps(make) -> None:
    plain, compiled = parameter(), parameter()
    optimizer = make([compiled])
    optimizer.step = torch.compile(optimizer.step, backend="eager")
    train(make([plain]), plain, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about what it leaves uncompiled
        train(optimizer, compiled, 3)
    torch._dynamo.reset()
    assert torch.allclose(plain, compiled)


def test_an_oracle_takes_the_form_it_was_made_from() -> None:
    W, b = torch.zeros(2, 2), torch.ones(2)
    asked = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
    single = gt.oracle(lambda w: (w - 1).abs().sum(), W)
    found = gs.minimize(single, W, **asked)
    assert found.success
    assert gs.minimize(single, np.zeros((2, 2)), **asked).success
    assert single.unflatten(found.x) == pytest.approx(torch.ones(2, 2).double(), abs=1e-2)

    named = gt.oracle(lambda p: p["W"].abs().sum() + (p["b"] - 3).abs().sum(), {"W": W, "b": b})
    found = gs.minimize(named, {"b": b, "W": W}, **asked)  # keys in another order
    assert named.unflatten(found.x)["b"] == pytest.approx(torch.full((2,), 3.0).double(), abs=1e-2)
    proof = gs.certify(named, named.unflatten(found.x), delta=1e-2, rng=0)
    assert proof.eps <= 1e-3
    assert proof.verify(named).ok
    with pytest.raises(gs.errors.InputTypeError, match="layout"):
        gs.minimize(single, np.zeros((3, 2)), **asked)


def test_constraints_are_tensors_in_the_form_of_the_variables() -> None:
    V = torch.tensor([[1.0, 0.2], [0.1, 0.9], [0.3, -0.2]], dtype=torch.float64)
    f = gt.oracle(lambda V: V.abs().sum(), V)
    unit = gt.constraint(lambda V: (V * V).sum(0) - 1, V)
    res = gs.minimize(f, V, constraints=unit, eps=1e-3, delta=1e-3, rng=0)
    assert res.success
    assert res.violation < 1e-6
    # The columns of length 1 with the smallest sum of moduli are unit vectors.
    assert res.fun == pytest.approx(2.0, abs=1e-3)
    step = 1e-6 * np.ones(f.dim)
    change = unit.fun(f.start + step) - unit.fun(f.start - step)
    assert change / 2 == pytest.approx(unit.jac(f.start) @ step, rel=1e-6)


def test_a_monitor_says_why_it_did_not_look() -> None:
    torch.manual_seed(0)
    model, data = torch.nn.Linear(2, 1), [(torch.randn(64, 2), torch.randn(64, 1))]
    clock = iter(np.arange(0.0, 1000.0, 1e-3))
    watch = gt.Monitor(
        model, torch.nn.MSELoss(), data, delta=1e-3, clock=lambda: float(next(clock))
    )
    assert watch.update() is not None
    assert watch.skipped == ""
    assert watch.update() is None
    assert "share" in watch.skipped
    assert watch.skipped in repr(watch)
    assert watch.update(last=True) is not None
    assert watch.skipped == ""
    every = gt.Monitor(model, torch.nn.MSELoss(), data, delta=1e-3, every=3)
    assert every.update() is not None
    assert every.update() is None
    assert "every = 3" in every.skipped


def test_orthogonality_entry_by_entry_as_pygranso_writes_it() -> None:
    """V'V = I says everything but its diagonal twice: twins share a multiplier."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 5))
    S = torch.tensor(A + A.T)
    V = torch.tensor(np.linalg.qr(rng.normal(size=(5, 2)))[0])
    f = gt.oracle(lambda V: -torch.trace(V.T @ S @ V) + 0.1 * V.abs().sum(), V)
    unit = gt.constraint(lambda V: V.T @ V - torch.eye(2, dtype=V.dtype), V)
    res = gs.minimize(f, V, constraints=unit, eps=1e-3, delta=1e-3, rng=0)
    assert res.success, res.message
    assert res.certificate.verify(f, constraints=unit).ok
    assert res.multipliers[1] == pytest.approx(res.multipliers[2])
