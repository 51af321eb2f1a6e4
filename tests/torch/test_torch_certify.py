"""Certificates of models: sound on kinks, gentle with the model, bounded in memory."""

from __future__ import annotations

import copy
import gc
import tracemalloc
import weakref
from functools import partial

import numpy as np
import pytest
import torch

import goldstein as gs
import goldstein.torch
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import data_mean as kept_batches
from goldstein.torch.oracle import as_double, unflatten


def problem(samples: int = 60, dtype: torch.dtype = torch.float32):
    torch.manual_seed(samples)
    layers = [torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1)]
    model = torch.nn.Sequential(*layers).to(dtype)
    inputs = torch.randn(samples, 3, dtype=dtype)
    targets = inputs.abs().sum(dim=1, keepdim=True)
    return model, inputs, targets


def batches(inputs: torch.Tensor, targets: torch.Tensor, size: int) -> list:
    return list(zip(inputs.split(size), targets.split(size), strict=True))


def test_gradient_is_the_mean_over_all_samples_whatever_the_batches() -> None:
    model, inputs, targets = problem(61, torch.float64)
    loss_fn = torch.nn.MSELoss()
    whole = goldstein.torch.DataOracle(model, loss_fn, [(inputs, targets)])
    parts = goldstein.torch.DataOracle(model, loss_fn, batches(inputs, targets, 7))
    loss_fn(model(inputs), targets).backward()
    expected = np.concatenate([p.grad.numpy().ravel() for p in model.parameters()])
    np.testing.assert_allclose(parts.gradient(parts.start), expected, atol=1e-14)
    np.testing.assert_allclose(whole.gradient(whole.start), expected, atol=1e-14)
    assert parts.value(parts.start) == pytest.approx(whole.value(whole.start), rel=1e-15)
    assert parts.samples == 61


def test_order_of_batches_does_not_matter() -> None:
    model, inputs, targets = problem(70, torch.float64)
    shares = batches(inputs, targets, 5)
    loss_fn = torch.nn.L1Loss()
    forward = goldstein.torch.DataOracle(model, loss_fn, shares)
    backward = goldstein.torch.DataOracle(model, loss_fn, shares[::-1])
    y = forward.start + 0.1
    np.testing.assert_allclose(forward.gradient(y), backward.gradient(y), rtol=0, atol=1e-14)
    assert forward.value(y) == pytest.approx(backward.value(y), rel=1e-14)


def test_certificate_verifies_and_says_what_was_done() -> None:
    model, inputs, targets = problem()
    data = batches(inputs, targets, 16)
    certificate = goldstein.torch.certify(
        model, torch.nn.L1Loss(), data, delta=0.05, max_calls=120, seed=4
    )
    assert certificate.label == "conditional"
    assert certificate.meta["samples"] == 60
    assert "float64" in certificate.meta["evaluated_in"]
    assert "float32" in certificate.meta["converted_from"]
    oracle = goldstein.torch.DataOracle(model, torch.nn.L1Loss(), data)
    assert certificate.verify(oracle).ok
    again = goldstein.torch.certify(
        model, torch.nn.L1Loss(), data, delta=0.05, max_calls=120, seed=4
    )
    np.testing.assert_array_equal(again.points, certificate.points)


def test_trained_model_has_a_small_eps_and_an_untrained_one_has_not() -> None:
    model, inputs, targets = problem(40, torch.float64)
    data, loss_fn = [(inputs, targets)], torch.nn.L1Loss()
    before = goldstein.torch.certify(model, loss_fn, data, delta=0.1, max_calls=150)
    optimizer = goldstein.torch.O2NC(model.parameters())
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=600)
    for _ in range(600):
        optimizer.zero_grad()
        loss_fn(model(inputs), targets).backward()
        optimizer.step()
        scheduler.step()
    with optimizer.at_center():
        after = goldstein.torch.certify(model, loss_fn, data, delta=0.1, max_calls=150)
    assert before.descent is not None
    assert after.eps < 0.2 * before.eps


def test_model_is_left_alone() -> None:
    model, inputs, targets = problem()
    model.append(torch.nn.Dropout(0.5))
    model.train()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    state = copy.deepcopy(model.state_dict())
    gradients = [p.grad.clone() for p in model.parameters()]
    storage = [p.data_ptr() for p in model.parameters()]
    goldstein.torch.certify(
        model, torch.nn.MSELoss(), batches(inputs, targets, 20), delta=0.01, max_calls=20
    )
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name])
        assert value.dtype == torch.float32
    for p, gradient, pointer in zip(model.parameters(), gradients, storage, strict=True):
        assert torch.equal(p.grad, gradient)
        assert p.data_ptr() == pointer


@pytest.mark.parametrize(
    "sneaky",
    [
        lambda x: torch.relu(x) - torch.relu(-x),
        lambda x: x.clamp_min(0.0) + x.clamp_max(0.0),
    ],
)
def test_autograd_at_a_tie_does_not_fool_the_certificate(sneaky) -> None:
    """These functions are x, slope 1 everywhere; autograd says 0 or 2 at the tie x = 0."""
    tie = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    sneaky(tie).sum().backward()
    assert float(tie.grad) != 1.0
    oracle = goldstein.torch.oracle(lambda x: sneaky(x).sum(), torch.zeros(1))
    certificate = gs.certify(oracle, oracle.start, delta=1e-3, rng=0)
    assert certificate.eps == pytest.approx(1.0, rel=1e-12)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.zeros(1))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return sneaky(self.w) * inputs

    data = [(torch.ones(4, 1), torch.zeros(4, 1))]
    found = goldstein.torch.certify(Net(), lambda out, target: out.mean(), data, delta=1e-3)
    assert found.eps == pytest.approx(1.0, rel=1e-12)


class Endless:
    """Batches made on the fly: whatever stays alive, certify itself holds on to."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.handed_out: list[weakref.ref] = []
        self.most_alive = 0

    def __iter__(self):
        for number in range(self.count):
            draw = torch.Generator().manual_seed(number)
            inputs = torch.randn(500, 3, generator=draw)
            self.handed_out.append(weakref.ref(inputs))
            self.handed_out = [ref for ref in self.handed_out if ref() is not None]
            self.most_alive = max(self.most_alive, len(self.handed_out))
            yield inputs, inputs.abs().sum(dim=1, keepdim=True)


def live_tensors() -> int:
    gc.collect()
    # By type: asking some deprecated objects for their class warns.
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


def test_memory_is_that_of_few_vectors() -> None:
    """NumPy's part of it: of torch come the model, its gradient, and what a batch computes."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(200, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200)
    )
    size = sum(p.numel() for p in model.parameters())
    data = [(torch.randn(8, 200), torch.randn(8, 200)) for _ in range(2)]
    tracemalloc.start()
    goldstein.torch.certify(model, torch.nn.L1Loss(), data, delta=1e-2)
    peak = tracemalloc.get_traced_memory()[1] / (8 * size)
    tracemalloc.stop()
    assert peak < 20.0


def test_memory_does_not_grow_with_the_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_batches, "KEPT_BYTES", 10_000)
    model, _, _ = problem()
    loss_fn = torch.nn.L1Loss()
    goldstein.torch.certify(model, loss_fn, Endless(1), delta=0.01, max_calls=4)
    before = live_tensors()
    alive, traced = [], []
    # Fewer than ten batches are done before Python's collector has run once.
    for count in (10, 40):
        data = Endless(count)
        tracemalloc.start()
        goldstein.torch.certify(model, loss_fn, data, delta=0.01, max_calls=8)
        traced.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        alive.append(data.most_alive)
    # Four times the samples: as many batches alive at once, as much memory on the Python side.
    assert alive[0] == alive[1] <= 2
    assert traced[1] <= 1.2 * traced[0] + 20_000
    assert live_tensors() <= before


def test_loss_is_freed_after_each_batch() -> None:
    model, inputs, targets = problem()
    losses: list[weakref.ref] = []

    def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        assert all(ref() is None for ref in losses[:-1])
        loss = (output - target).square().mean()
        losses.append(weakref.ref(loss))
        return loss

    oracle = goldstein.torch.DataOracle(model, loss_fn, batches(inputs, targets, 10))
    oracle.gradient(oracle.start)
    assert len(losses) >= 6
    assert all(ref() is None for ref in losses)


def test_unused_and_frozen_parameters() -> None:
    model, inputs, targets = problem(20, torch.float64)
    model[0].bias.requires_grad_(False)
    model.register_parameter("unused", torch.nn.Parameter(torch.ones(2, dtype=torch.float64)))
    oracle = goldstein.torch.DataOracle(model, torch.nn.MSELoss(), [(inputs, targets)])
    assert oracle.dim == 18 + 7 + 2
    assert np.count_nonzero(oracle.gradient(oracle.start) == 0.0) >= 2


def test_loss_module_with_weights_follows_into_float64() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    loss_fn = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
    data = [(torch.randn(8, 3), torch.randint(0, 2, (8,)))]
    assert goldstein.torch.certify(model, loss_fn, data, delta=0.1, max_calls=15).eps > 0.0
    assert loss_fn.weight.dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ((3, torch.nn.MSELoss(), []), InputTypeError, "model"),
        ((torch.nn.Linear(1, 1), 3, []), InputTypeError, "loss_fn"),
        ((torch.nn.Linear(1, 1), torch.nn.MSELoss(), iter([])), InputTypeError, "generator"),
        ((torch.nn.Linear(1, 1), torch.nn.MSELoss(), []), InputError, "0 samples"),
        ((torch.nn.ReLU(), torch.nn.MSELoss(), []), InputError, "no parameters"),
        ((torch.nn.Linear(1, 1), torch.nn.MSELoss(), [torch.ones(1)]), InputTypeError, "pairs"),
        (
            (
                torch.nn.Linear(1, 1),
                torch.nn.MSELoss(reduction="none"),
                [(torch.ones(2, 1), torch.ones(2, 1))],
            ),
            InputTypeError,
            "one number",
        ),
    ],
)
def test_mistakes_are_explained(arguments: tuple, kind: type, word: str) -> None:
    with pytest.raises(kind, match=word):
        goldstein.torch.certify(*arguments, delta=0.1)


def test_data_that_dries_up_is_noticed() -> None:
    class Leaky:
        passes = 0

        def __iter__(self):
            self.passes += 1
            return iter([(torch.ones(3 - self.passes % 2, 1), torch.ones(3 - self.passes % 2, 1))])

    with pytest.raises(InputError, match="samples in one pass"):
        goldstein.torch.certify(
            torch.nn.Linear(1, 1), torch.nn.L1Loss(), Leaky(), delta=0.1, max_calls=10
        )


def test_oracle_of_a_closure_and_of_arguments_agree() -> None:
    a = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    b = torch.nn.Parameter(torch.tensor([[3.0]]))
    spread = goldstein.torch.oracle(lambda a, b: (a * b).abs().sum(), [a, b])
    closure = goldstein.torch.oracle(lambda: (a * b).abs().sum(), [a, b])
    pointer = a.data_ptr()
    x = np.array([0.5, -1.0, 2.0])
    assert spread.value(x) == closure.value(x) == 3.0
    np.testing.assert_array_equal(spread.gradient(x), [2.0, -2.0, 1.5])
    np.testing.assert_array_equal(closure.gradient(x), spread.gradient(x))
    assert a.dtype == torch.float32
    assert a.data_ptr() == pointer
    assert torch.equal(a.detach(), torch.tensor([1.0, -2.0]))
    assert a.grad is None


def test_oracle_takes_a_module() -> None:
    model, inputs, targets = problem(12, torch.float64)
    oracle = goldstein.torch.oracle(lambda: (model(inputs) - targets).abs().mean(), model)
    report = gs.check_gradient(oracle.value, oracle.gradient, oracle.start + 0.01)
    assert report.ok, report


@pytest.mark.parametrize(
    ("fn", "params", "kind", "word"),
    [
        (3, torch.zeros(1), InputTypeError, "callable"),
        (lambda x: x, torch.zeros(2), InputTypeError, "one element"),
        (lambda x: torch.ones(()), torch.zeros(2), InputTypeError, "does not depend"),
        (lambda x: x, [], InputError, "no parameters"),
        (lambda x: x, torch.zeros(2, dtype=torch.int64), InputTypeError, "real tensors"),
    ],
)
def test_oracle_mistakes_are_explained(fn, params, kind: type, word: str) -> None:
    with pytest.raises(kind, match=word):
        goldstein.torch.oracle(fn, params).gradient(np.zeros(2))


def test_the_way_back_to_tensors() -> None:
    target = torch.arange(6.0).reshape(2, 3)
    tensor = goldstein.torch.oracle(lambda w: (w - target).abs().sum(), torch.zeros(2, 3))
    result = gs.minimize(tensor, tensor.start, eps=1e-6, delta=1e-6, rng=0)
    found = tensor.unflatten(result.x)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, target.double(), rtol=0, atol=1e-5)
    pair = goldstein.torch.oracle(
        lambda a, b: a.sum() + b.sum(), [torch.zeros(2, 1), torch.ones(())]
    )
    assert [t.shape for t in pair.unflatten(np.arange(3.0))] == [(2, 1), ()]
    assert pair.unflatten([1.0, 2.0, 3.0])[1] == 3.0

    model, inputs, targets = problem(20)
    model[0].bias.requires_grad_(False)
    for oracle in (
        goldstein.torch.oracle(lambda: (model(inputs.double()) - targets).abs().mean(), model),
        goldstein.torch.DataOracle(model, torch.nn.L1Loss(), [(inputs, targets)]),
    ):
        moved = oracle.unflatten(oracle.start + 1.0)
        assert sorted(moved) == ["0.weight", "2.bias", "2.weight"]
        other = copy.deepcopy(model)
        assert not other.load_state_dict(moved, strict=False).unexpected_keys
        torch.testing.assert_close(other[2].weight, model[2].weight + 1.0)


def test_progress_is_told_of_every_pass(capsys: pytest.CaptureFixture[str]) -> None:
    model, inputs, targets = problem()
    seen: list[tuple[int, int]] = []
    arguments = (model, torch.nn.L1Loss(), batches(inputs, targets, 16))
    goldstein.torch.certify(
        *arguments, delta=0.05, max_calls=9, progress=lambda *now: seen.append(now)
    )
    assert seen == [(k, 9) for k in range(1, len(seen) + 1)]
    assert len(seen) >= 4
    goldstein.torch.certify(*arguments, delta=0.05, max_calls=9, progress=True)
    assert capsys.readouterr().err == ""  # no terminal, no line
    with pytest.raises(InputTypeError, match="progress"):
        goldstein.torch.certify(*arguments, delta=0.05, progress=3)


def told(passes: list[int], made: int, most: int) -> None:
    passes.append(made)


def test_few_passes_where_the_loss_falls_nearby() -> None:
    """As good a bound as the general search, with a fraction of its passes, and it verifies."""
    model, inputs, targets = problem()
    data, loss_fn = batches(inputs, targets, 16), torch.nn.MSELoss()
    oracle = goldstein.torch.DataOracle(model, loss_fn, data)
    for delta in (1e-3, 1e-1):
        passes: list[int] = []
        general = gs.certify(oracle, oracle.start, delta=delta, rng=0, max_calls=64)
        quick = goldstein.torch.certify(
            model, loss_fn, data, delta=delta, progress=partial(told, passes)
        )
        assert len(passes) <= 24
        assert quick.eps <= 1.1 * general.eps
        assert quick.verify(oracle).ok
        # What is said about descent can be checked, too.
        far = oracle.start + quick.meta["descent_step"] * quick.descent
        fall = oracle.value(oracle.start) - oracle.value(far)
        assert fall == pytest.approx(quick.meta["descent_fall"], rel=1e-9)


def test_a_bound_that_one_gradient_proves_costs_few_passes() -> None:
    """Two gradients, one beside the point that the claim rests on, and a look at the values.

    Of 1230 variables about a hundred hardly matter at x. Whether values resolve these is asked of
    many at once, where they do.
    """
    torch.manual_seed(0)
    model, data = torch.nn.Linear(40, 30), [(torch.randn(20, 40), torch.randn(20, 30))]
    oracle = goldstein.torch.DataOracle(model, torch.nn.MSELoss(), data)
    first = float(np.linalg.norm(oracle.gradient(oracle.start)))
    passes: list[int] = []
    claim = goldstein.torch.certify(
        model,
        torch.nn.MSELoss(),
        data,
        delta=1e-2,
        eps=0.999 * first,
        progress=partial(told, passes),
    )
    assert claim.eps <= 0.999 * first
    assert len(passes) <= 50
    assert claim.verify(oracle).ok


def test_a_value_that_came_with_a_gradient_is_the_value() -> None:
    model, inputs, targets = problem()
    oracle = goldstein.torch.DataOracle(model, torch.nn.L1Loss(), batches(inputs, targets, 16))
    y = oracle.start + 0.01
    alone = oracle.value(y)
    oracle.gradient(y)
    assert oracle.value(y) == pytest.approx(alone, rel=1e-14)
    assert oracle.value(oracle.start) != oracle.value(y)


class TwoInputs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right = torch.nn.Linear(2, 3), torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, z: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return scale * torch.relu(self.left(x) + self.right(z))


def two_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    x, z = torch.randn(20, 2, generator=draw), torch.randn(20, 4, generator=draw)
    return x, z, torch.randint(0, 3, (20,), generator=draw)


FORMS = {
    "triples": lambda x, z, y: (x, z, y),
    "tuples of inputs": lambda x, z, y: ((x, z), y),
    "inputs by name": lambda x, z, y: ({"z": z, "x": x}, y),
    "arrays": lambda x, z, y: [[x.numpy(), z.numpy()], y.numpy()],
    "dicts": lambda x, z, y: {"x": x, "labels": y, "z": z, "note": "not for the model"},
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_batches_may_be_tuples_and_dicts(form: str) -> None:
    parts = [FORMS[form](*rows) for rows in zip(*(t.split(6) for t in two_inputs()), strict=True)]
    loss_fn = torch.nn.functional.cross_entropy
    if form == "dicts":
        oracle = goldstein.torch.DataOracle(
            TwoInputs(), lambda out, batch: loss_fn(out, batch["labels"]), parts
        )
    else:
        oracle = goldstein.torch.DataOracle(TwoInputs(), loss_fn, parts)
    x, z, y = two_inputs()
    with torch.no_grad():
        expected = float(loss_fn(TwoInputs().double()(x.double(), z.double()), y))
    assert oracle.value(oracle.start) == pytest.approx(expected, rel=1e-12)
    assert oracle.samples == 20
    assert np.linalg.norm(oracle.gradient(oracle.start)) > 0.0


def test_a_model_that_computes_its_own_loss_from_a_dict() -> None:
    class Own(TwoInputs):
        def forward(self, labels: torch.Tensor, **inputs: torch.Tensor):
            out = super().forward(**inputs)
            return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}

    x, z, y = two_inputs()
    data = [{"x": x[k : k + 5], "z": z[k : k + 5], "labels": y[k : k + 5]} for k in range(0, 20, 5)]
    found = goldstein.torch.certify(
        Own(), lambda out, _: out["loss"], data, delta=0.01, max_calls=10
    )
    assert found.meta["samples"] == 20
    ignoring = [{**batch, "labels": batch["labels"].clone()} for batch in data]
    ignoring[0]["labels"][:3] = -100
    with pytest.raises(InputError, match="not the mean over its samples"):
        goldstein.torch.certify(Own(), lambda out, _: out["loss"], ignoring, delta=0.01)


def test_the_cost_of_a_pass_is_that_of_the_model_and_not_of_the_loader() -> None:
    """A loader is asked twice, whatever the budget; its batches are joined to few."""
    model, inputs, targets = problem(600)
    reads = []

    class Rows(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(inputs)

        def __getitem__(self, index: int):
            reads.append(index)
            return inputs[index], targets[index]

    calls = []

    def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        calls.append(len(target))
        return (output - target).abs().mean()

    loader = torch.utils.data.DataLoader(Rows(), batch_size=4)
    oracle = goldstein.torch.DataOracle(model, loss_fn, loader)
    oracle.value(oracle.start)
    assert len(reads) <= 2 * len(inputs)
    calls.clear()
    oracle.gradient(oracle.start)
    assert calls == [600]


def test_a_point_that_is_visibly_not_stationary_costs_few_passes() -> None:
    """Where the loss falls at once, hundreds of gradients find what the first ones found."""
    model, inputs, targets = problem(40, torch.float64)
    arguments = (model, torch.nn.L1Loss(), [(inputs, targets)])
    for delta in (1e-3, 1e-1):
        passes: list[int] = []
        quick = goldstein.torch.certify(
            *arguments, delta=delta, progress=lambda made, most, seen=passes: seen.append(made)
        )
        long = goldstein.torch.certify(*arguments, delta=delta, max_calls=600)
        assert quick.descent is not None
        assert len(passes) <= 64
        assert quick.eps <= 1.2 * long.eps


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_points_and_batches_go_where_the_model_is(device: str) -> None:
    """One code path for all devices; `meta` is the one that is neither the host nor needs a GPU."""
    there = torch.device(device)
    batch = {"x": torch.ones(2, 3), "more": [torch.tensor([1, 2]), np.ones(2, np.float32)]}
    moved = as_double(batch, there)
    assert moved["x"].dtype == moved["more"][1].dtype == torch.float64
    assert moved["more"][0].dtype == torch.int64
    assert {t.device for t in (moved["x"], *moved["more"])} == {there}
    like = [torch.zeros(2, 2, device=there), torch.zeros(3, device=there)]
    pieces = unflatten(np.arange(7.0), like)
    assert [p.shape for p in pieces] == [p.shape for p in like]
    assert {p.device for p in pieces} == {there}


class NoisyBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient + 1e-2 * torch.randn_like(gradient)


def test_noise_in_the_gradients_alone_is_found() -> None:
    """The values agree, so the inspection of the data sees nothing; more than 1000 parameters."""

    class Noisy(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return NoisyBackward.apply(super().forward(x))

    torch.manual_seed(0)
    data = [(torch.randn(20, 40), torch.randn(20, 30))]
    with pytest.raises(gs.NotDeterministicError):
        goldstein.torch.certify(Noisy(40, 30), torch.nn.MSELoss(), data, delta=0.1, max_calls=60)
