"""The optimizers: windows stay in their balls, runs replay, PyTorch's own tools keep working."""

from __future__ import annotations

import contextlib
import copy
import io
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import goldstein.torch
from goldstein.errors import InputError, InputTypeError

KINDS = {
    "psingd": lambda params, **kw: goldstein.torch.PSINGD(params, **kw),
    "o2nc": lambda params, **kw: goldstein.torch.O2NC(params, **kw),
    "o2nc-ogd": lambda params, **kw: goldstein.torch.O2NC(params, gradient_scale=2.0, **kw),
    "o2nc-restart": lambda params, **kw: goldstein.torch.O2NC(params, restart=True, **kw),
    "adam-o2nc": lambda params, **kw: goldstein.torch.AdamO2NC(params, **{"lr": 0.03, **kw}),
    "adam-o2nc-captured": lambda params, **kw: goldstein.torch.AdamO2NC(
        params, **{"lr": 0.03, "capturable": True, **kw}
    ),
}
kinds = pytest.mark.parametrize("kind", sorted(KINDS))


def network(seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.nn.Module:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)]
    return torch.nn.Sequential(*layers).to(dtype)


def batch(step: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(100 + step)
    inputs = torch.randn(16, 4, generator=draw, dtype=torch.float64)
    labels = (inputs[:, 0] > 0).long() + (inputs[:, 1] > 0).long()
    return inputs.to(dtype), labels


def train(model, optimizer, steps, first=0, dtype=torch.float64) -> list[float]:
    losses = []
    for step in range(first, first + steps):
        inputs, labels = batch(step, dtype)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).clone()


@pytest.mark.parametrize("kind", ["psingd", "o2nc"])
def test_defaults_train(kind: str) -> None:
    model = network()
    losses = train(model, KINDS[kind](model.parameters()), 300)
    assert sum(losses[-20:]) < 0.5 * sum(losses[:20])


@settings(max_examples=25, deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from(sorted(KINDS)),
    lr=st.floats(0.01, 3.0),
    seed=st.integers(0, 10**6),
    aligned=st.booleans(),
)
def test_every_window_lies_in_its_ball(
    data, kind: str, lr: float, seed: int, aligned: bool
) -> None:
    """Whatever gradients arrive, the last window's query points are near the centre."""
    dim = data.draw(st.integers(1, 12))
    scale = data.draw(st.sampled_from([1e-6, 1.0, 1e6]))
    w = torch.nn.Parameter(torch.zeros(dim, dtype=torch.float64))
    optimizer = KINDS[kind]([w], lr=lr, seed=seed)
    window = optimizer.settings["window"] if kind.startswith("o2nc") else optimizer.window
    order = math.inf if kind.startswith("adam") else 2.0
    draw = torch.Generator().manual_seed(seed)
    queries: list[torch.Tensor] = []
    for _ in range(2 * window + 3):
        queries.append(w.detach().clone())
        # Gradients that all point one way make the longest steps there are.
        fresh = torch.ones(dim) if aligned else torch.randn(dim, generator=draw)
        w.grad = scale * fresh.double()
        optimizer.step()
        with optimizer.at_center():
            for query in queries[-window:]:
                away = torch.linalg.vector_norm(query - w, ord=order)
                assert away <= optimizer.radius * (1 + 1e-9)


def checkpoint(model, optimizer, model_inside: bool, optimizer_inside: bool) -> dict:
    """Save each part inside or outside of `at_center`, to a file and back."""
    saved = {}
    for inside in (False, True):
        with optimizer.at_center() if inside else contextlib.nullcontext():
            if inside == model_inside:
                saved["model"] = copy.deepcopy(model.state_dict())
            if inside == optimizer_inside:
                saved["optimizer"] = copy.deepcopy(optimizer.state_dict())
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@kinds
@pytest.mark.parametrize("optimizer_inside", [False, True])
@pytest.mark.parametrize("model_inside", [False, True])
def test_a_resumed_run_is_the_run(kind: str, model_inside: bool, optimizer_inside: bool) -> None:
    straight = network()
    optimizer = KINDS[kind](straight.parameters(), seed=3)
    expected = train(straight, optimizer, 60)

    first = network()
    before = KINDS[kind](first.parameters(), seed=3)
    losses = train(first, before, 25)
    saved = checkpoint(first, before, model_inside, optimizer_inside)
    second = network(seed=9)
    after = KINDS[kind](second.parameters())
    second.load_state_dict(saved["model"])
    after.load_state_dict(saved["optimizer"])
    losses += train(second, after, 35, first=25)

    if model_inside and not optimizer_inside:
        # The query points were not saved; they are recovered up to rounding.
        torch.testing.assert_close(losses, expected, rtol=0, atol=1e-6)
    else:
        assert losses == expected
        assert torch.equal(weights(second), weights(straight))


@kinds
def test_a_model_that_is_loaded_after_the_optimizer(kind: str) -> None:
    first = network()
    before = KINDS[kind](first.parameters(), seed=3)
    train(first, before, 25)
    for inside in (False, True):
        saved = checkpoint(first, before, inside, inside)
        second = network(seed=9)
        after = KINDS[kind](second.parameters())
        after.load_state_dict(saved["optimizer"])
        second.load_state_dict(saved["model"])
        if inside:
            with pytest.raises(InputError, match="load the model first"):
                train(second, after, 1, first=25)
        else:
            train(second, after, 1, first=25)


@kinds
def test_saving_changes_nothing(kind: str) -> None:
    model = network()
    optimizer = KINDS[kind](model.parameters())
    train(model, optimizer, 7)
    before = weights(model)
    settings_before = str(optimizer.param_groups)
    checkpoint(model, optimizer, True, True)
    assert torch.equal(weights(model), before)
    assert str(optimizer.param_groups) == settings_before
    assert all(
        set(state) <= {"average", "square", "direction"} for state in optimizer.state.values()
    )
    fresh = KINDS[kind](network().parameters())
    fresh.load_state_dict(fresh.state_dict())  # before the first step there is nothing to move


@kinds
def test_no_step_at_the_centre(kind: str) -> None:
    model = network()
    optimizer = KINDS[kind](model.parameters())
    train(model, optimizer, 3)
    query = weights(model)
    with optimizer.at_center():
        with pytest.raises(InputError, match="inside at_center"):
            train(model, optimizer, 1)
        with pytest.raises(InputError, match="inside at_center"):
            optimizer.load_state_dict(optimizer.state_dict())
        centre = weights(model)
        with optimizer.at_center():
            assert torch.equal(weights(model), centre)
        assert torch.equal(weights(model), centre)
    assert torch.equal(weights(model), query)
    train(model, optimizer, 1)


@kinds
def test_same_seed_same_run_and_other_seed_other_run(kind: str) -> None:
    runs = []
    for seed in (1, 1, 2):
        model = network()
        train(model, KINDS[kind](model.parameters(), seed=seed), 10)
        runs.append(weights(model))
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


@kinds
def test_foreach_and_plain_loops_agree(kind: str) -> None:
    runs = []
    for foreach in (True, False):
        model = network()
        train(model, KINDS[kind](model.parameters(), foreach=foreach), 50)
        runs.append(weights(model))
    torch.testing.assert_close(runs[0], runs[1], rtol=0, atol=1e-13)


@kinds
def test_norm_is_taken_over_all_groups_together(kind: str) -> None:
    one, two = network(), network()
    parts = list(two.parameters())
    groups = [{"params": parts[:1]}, {"params": parts[1:]}]
    train(one, KINDS[kind](one.parameters()), 20)
    train(two, KINDS[kind](groups), 20)
    torch.testing.assert_close(weights(one), weights(two), rtol=0, atol=1e-13)


@kinds
def test_groups_may_have_their_own_lr_and_nothing_else(kind: str) -> None:
    model = network()
    parts = list(model.parameters())
    start = weights(model)
    groups = [{"params": parts[:2], "lr": 0.0}, {"params": parts[2:]}]
    train(model, KINDS[kind](groups), 5)
    frozen = sum(p.numel() for p in parts[:2])
    assert torch.equal(weights(model)[:frozen], start[:frozen])
    assert not torch.equal(weights(model)[frozen:], start[frozen:])
    with pytest.raises(InputError, match=r"only lr.* may differ"):
        KINDS[kind]([{"params": parts[:2], "seed": 5}, {"params": parts[2:]}])


@kinds
def test_schedulers_act_on_the_step_length(kind: str) -> None:
    model = network()
    optimizer = KINDS[kind](model.parameters())
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=10)
    for step in range(10):
        train(model, optimizer, 1, first=step)
        scheduler.step()
    train(model, optimizer, 1, first=10)
    rest = weights(model)
    train(model, optimizer, 5, first=11)
    torch.testing.assert_close(weights(model), rest, rtol=0, atol=1e-12)
    assert optimizer.radius == 0.0


@kinds
def test_gradscaler_skips_overflow_and_scales_back(kind: str) -> None:
    plain, scaled = network(dtype=torch.float32), network(dtype=torch.float32)
    optimizer = KINDS[kind](scaled.parameters())
    train(plain, KINDS[kind](plain.parameters()), 3, dtype=torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for step in range(4):
        inputs, labels = batch(min(step, 2), torch.float32)
        optimizer.zero_grad()
        scaler.scale(torch.nn.functional.cross_entropy(scaled(inputs), labels)).backward()
        if step == 3:
            before = weights(scaled)
            next(scaled.parameters()).grad[0, 0] = math.inf
        scaler.step(optimizer)
        scaler.update()
    assert torch.equal(weights(scaled), before)
    assert optimizer.settings["step"] == 3
    torch.testing.assert_close(weights(scaled), weights(plain), rtol=1e-5, atol=1e-6)


@kinds
def test_centre_comes_and_goes_bit_for_bit(kind: str) -> None:
    model = network()
    optimizer = KINDS[kind](model.parameters())
    train(model, optimizer, 7)
    query, state = weights(model), copy.deepcopy(optimizer.state_dict())
    with contextlib.suppress(RuntimeError), optimizer.at_center():
        assert not torch.equal(weights(model), query)
        raise RuntimeError("leave early")
    assert torch.equal(weights(model), query)
    assert str(state["param_groups"]) == str(optimizer.state_dict()["param_groups"])


def test_centre_is_the_end_of_the_step() -> None:
    """The centre moves by lr m / (p |m| + q)."""
    w = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))
    optimizer = goldstein.torch.PSINGD([w], offset=10.0, perturbation=0.0)
    w.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    optimizer.step()
    with optimizer.at_center():
        expected = torch.tensor([1.0 - 3.0 / 15.0, 2.0 - 4.0 / 15.0], dtype=torch.float64)
        torch.testing.assert_close(w.detach(), expected, rtol=0, atol=1e-15)


def test_first_step_of_the_learner_uses_the_whole_radius() -> None:
    w = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
    optimizer = goldstein.torch.O2NC([w], radius=0.5)
    w.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    optimizer.step()
    with optimizer.at_center():
        expected = torch.tensor([-0.3, -0.4], dtype=torch.float64)
        torch.testing.assert_close(w.detach(), expected, rtol=0, atol=1e-15)


@kinds
def test_a_parameter_without_gradient_counts_as_zero(kind: str) -> None:
    """Leaving .grad None and writing zeros into it are the same thing."""
    runs = []
    for explicit in (True, False):
        a = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        b = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
        optimizer = KINDS[kind]([a, b], seed=4)
        for step in range(6):
            a.grad = torch.full_like(a, 1.0 + step)
            b.grad = torch.full_like(b, -1.0)
            if step in (2, 3):
                b.grad = torch.zeros_like(b) if explicit else None
            optimizer.step()
        runs.append(torch.cat([a.detach(), b.detach()]))
    assert torch.equal(*runs)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"adam-o2nc-captured"}))
def test_a_bad_gradient_is_refused_and_training_goes_on(kind: str) -> None:
    model = network()
    optimizer = KINDS[kind](model.parameters())
    train(model, optimizer, 5)
    with optimizer.at_center():
        centre = weights(model)
    for p in model.parameters():
        p.grad = torch.full_like(p, math.nan)
    with pytest.raises(InputError, match="not finite at step 5"):
        optimizer.step()
    with optimizer.at_center():
        torch.testing.assert_close(weights(model), centre, rtol=0, atol=1e-14)
    losses = train(model, optimizer, 5, first=5)
    assert all(math.isfinite(loss) for loss in losses)


@kinds
def test_closure_is_accepted(kind: str) -> None:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = KINDS[kind]([w])

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = w.abs().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0


@kinds
def test_leaves_the_kink_it_starts_on(kind: str) -> None:
    """All-zero weights sit on every kink; the first step must leave it (PSINGD: by the noise)."""
    w = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
    optimizer = KINDS[kind]([w])
    w.grad = torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)
    optimizer.step()
    assert w.detach()[0] != 0.0
    if kind == "psingd":
        assert (w.detach() != 0.0).all()


def test_large_models_are_perturbed_part_after_part() -> None:
    size = 100_000
    w = torch.nn.Parameter(torch.zeros(size, dtype=torch.float64))
    optimizer = goldstein.torch.PSINGD([w], perturbation=0.5)
    touched = torch.zeros(size, dtype=torch.bool)
    for _ in range(4):
        before = w.detach().clone()
        w.grad = torch.zeros_like(w)
        optimizer.step()
        change = w.detach() - before
        assert change.norm() <= 0.5
        touched |= change != 0
    assert touched.double().mean() > 0.99


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda p: goldstein.torch.PSINGD(p, lr=-1.0), "lr"),
        (lambda p: goldstein.torch.PSINGD(p, averaging=1.0), "averaging"),
        (lambda p: goldstein.torch.PSINGD(p, slope=0.0), "slope"),
        (lambda p: goldstein.torch.PSINGD(p, offset=math.nan), "offset"),
        (lambda p: goldstein.torch.PSINGD(p, perturbation=-1.0), "perturbation"),
        (lambda p: goldstein.torch.PSINGD(p, seed=-1), "seed"),
        (lambda p: goldstein.torch.O2NC(p, radius=0.0), "radius"),
        (lambda p: goldstein.torch.O2NC(p, window=0), "window"),
        (lambda p: goldstein.torch.O2NC(p, gradient_scale=-1.0), "gradient_scale"),
    ],
)
def test_bad_settings_are_named(build, word: str) -> None:
    with pytest.raises(InputError, match=word):
        build([torch.nn.Parameter(torch.zeros(2))])


def test_wrong_kinds_of_parameters_are_refused() -> None:
    with pytest.raises(InputTypeError, match="dtype"):
        goldstein.torch.O2NC([torch.zeros(2, dtype=torch.complex64, requires_grad=True)])
    layer = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = goldstein.torch.PSINGD(layer.parameters())
    layer(torch.tensor([1])).sum().backward()
    with pytest.raises(InputTypeError, match="sparse"):
        optimizer.step()
