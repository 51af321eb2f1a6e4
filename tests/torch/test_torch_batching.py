"""What is certified is the mean over all samples: the batches must not matter, or it is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import goldstein.torch
from goldstein.errors import InputError
from goldstein.oracles import data_mean as kept_batches
from goldstein.oracles.data_mean import inspect_mean

CLASS_WEIGHTS = torch.tensor([1.0, 10.0, 0.3], dtype=torch.float64)


def model(outputs: int = 3) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs)]
    return torch.nn.Sequential(*layers).double()


def samples(count: int = 45, *, by_class: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(count)
    inputs = torch.randn(count, 4, generator=draw, dtype=torch.float64)
    labels = torch.randint(0, 3, (count,), generator=draw)
    if by_class:
        labels = labels.sort().values
    return inputs, labels


def cut(inputs: torch.Tensor, targets: torch.Tensor, size: int) -> list:
    return list(zip(inputs.split(size), targets.split(size), strict=True))


def some_ignored(labels: torch.Tensor, ignored: int = -100) -> torch.Tensor:
    return torch.where(torch.arange(len(labels)) % 3 == 0, ignored, labels)


KNOWN = {
    "class weights": (torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS), lambda y: y),
    "ignored": (torch.nn.CrossEntropyLoss(), some_ignored),
    "ignored by the function": (functional.cross_entropy, some_ignored),
    "weights and ignored": (
        torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS.float(), ignore_index=7),
        lambda y: some_ignored(y, 7),
    ),
    "smoothed": (
        torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS, label_smoothing=0.2),
        some_ignored,
    ),
    "partial": (partial(functional.cross_entropy, weight=CLASS_WEIGHTS), some_ignored),
    "probabilities": (
        torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS),
        lambda y: functional.one_hot(y, 3).double() * 0.7 + 0.1,
    ),
    "log-likelihoods": (torch.nn.NLLLoss(weight=CLASS_WEIGHTS), some_ignored),
}


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("size", [1, 4, 16, 44])
@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_weighted_means_do_not_depend_on_the_batches(kind: str, size: int, by_class: bool) -> None:
    loss_fn, change = KNOWN[kind]
    inputs, labels = samples(by_class=by_class)
    targets, net = change(labels), model()
    if kind == "log-likelihoods":
        net.append(torch.nn.LogSoftmax(dim=1))
    loss = (loss_fn.double() if isinstance(loss_fn, torch.nn.Module) else loss_fn)(
        net(inputs), targets
    )
    expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, net.parameters())])
    oracle = goldstein.torch.DataOracle(net, loss_fn, cut(inputs, targets, size))
    assert oracle.value(oracle.start) == pytest.approx(float(loss.detach()), rel=1e-12)
    np.testing.assert_allclose(oracle.gradient(oracle.start), expected, rtol=1e-9, atol=1e-13)
    assert oracle.samples == 45 or size == 1  # a batch in which nothing counts is left out


def test_every_pixel_counts_once_in_a_segmentation() -> None:
    torch.manual_seed(1)
    net = torch.nn.Conv2d(1, 3, 3, padding=1).double()
    inputs = torch.randn(10, 1, 5, 5, dtype=torch.float64)
    targets = some_ignored(torch.randint(0, 3, (250,))).reshape(10, 5, 5)
    loss_fn = torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS)
    oracle = goldstein.torch.DataOracle(net, loss_fn, cut(inputs, targets, 3))
    assert oracle.value(oracle.start) == pytest.approx(
        float(loss_fn(net(inputs), targets).detach())
    )


def weighted(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output, target, weight=CLASS_WEIGHTS)


def rarely_ignored(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """One sample of the last batch is not counted."""
    return functional.cross_entropy(output, torch.where(target == 9, -100, target))


def contrastive(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(output @ output.T, torch.arange(len(output)))


@pytest.mark.parametrize("size", [1, 4, 11])
@pytest.mark.parametrize("loss_fn", [weighted, rarely_ignored, contrastive])
def test_a_loss_that_depends_on_the_batches_is_refused(loss_fn, size: int) -> None:
    inputs, labels = samples(by_class=True)
    if loss_fn is rarely_ignored:
        labels[-3], size = 9, max(size, 2)  # alone it has the mean 0 / 0
    with pytest.raises(InputError, match=r"not the mean over its samples(.|\n)*reduction='sum'"):
        goldstein.torch.certify(model(), loss_fn, cut(inputs, labels, size), delta=0.1)


@pytest.mark.parametrize("loss_fn", [weighted, contrastive])
def test_one_batch_may_be_any_function(loss_fn) -> None:
    inputs, labels = samples()
    net = model()
    oracle = goldstein.torch.DataOracle(net, loss_fn, [(inputs, labels)])
    assert oracle.value(oracle.start) == pytest.approx(float(loss_fn(net(inputs), labels).detach()))


def total(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - functional.one_hot(target, 3)).abs().sum()


def test_a_sum_is_told_from_a_mean_and_can_be_had() -> None:
    data = cut(*samples(), 8)
    with pytest.raises(InputError, match="is the sum over its samples, expected the mean"):
        goldstein.torch.certify(model(), total, data, delta=0.1)
    with pytest.raises(InputError, match="is the mean over its samples, expected the sum"):
        goldstein.torch.certify(
            model(), lambda o, t: functional.cross_entropy(o, t), data, delta=0.1, reduction="sum"
        )
    with pytest.raises(InputError, match="loss_fn has reduction='sum'"):
        goldstein.torch.certify(model(), torch.nn.L1Loss(reduction="sum"), data, delta=0.1)
    with pytest.raises(InputError, match="reduction is 'median'"):
        goldstein.torch.certify(model(), total, data, delta=0.1, reduction="median")
    summed = goldstein.torch.DataOracle(model(), total, data, reduction="sum")
    averaged = goldstein.torch.DataOracle(model(), lambda o, t: total(o, t) / len(t), data)
    assert summed.value(summed.start) == pytest.approx(averaged.value(averaged.start), rel=1e-12)
    np.testing.assert_allclose(
        summed.gradient(summed.start), averaged.gradient(averaged.start), rtol=1e-10, atol=1e-13
    )
    certificate = goldstein.torch.certify(
        model(), total, data, delta=0.1, reduction="sum", max_calls=20
    )
    assert certificate.meta["reduction"] == "sum"


@settings(max_examples=25, deadline=None)
@given(data=st.data(), count=st.integers(2, 30))
def test_any_cut_of_the_samples_gives_their_mean(data, count: int) -> None:
    inputs, labels = samples(count)
    edges = sorted(data.draw(st.sets(st.integers(1, count - 1))))
    sizes = np.diff([0, *edges, count]).tolist()
    pieces = list(zip(inputs.split(sizes), labels.split(sizes), strict=True))
    net, loss_fn = model(), torch.nn.MultiMarginLoss()
    oracle = goldstein.torch.DataOracle(net, loss_fn, pieces)
    expected = float(loss_fn(net(inputs), labels).detach())
    assert oracle.value(oracle.start) == pytest.approx(expected, rel=1e-12)


class AlwaysDropping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = model()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(self.inner(x))


class BatchStatistics(AlwaysDropping):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(self.inner(x), None, None, training=True)


@pytest.mark.parametrize("size", [8, 45])
def test_dropout_that_is_always_on_is_named(size: int) -> None:
    with pytest.raises(InputError, match=r"not deterministic.*dropout.*confidence_bound"):
        goldstein.torch.certify(
            AlwaysDropping(), torch.nn.CrossEntropyLoss(), cut(*samples(), size), delta=0.01
        )


@pytest.mark.parametrize("functional_form", [False, True])
def test_batch_statistics_are_named(functional_form: bool) -> None:
    net = BatchStatistics()
    if not functional_form:
        net = model().append(torch.nn.BatchNorm1d(3, track_running_stats=False))
    with pytest.raises(InputError, match="running statistics"):
        goldstein.torch.certify(net, torch.nn.CrossEntropyLoss(), cut(*samples(), 8), delta=0.01)
    fine = model().append(torch.nn.BatchNorm1d(3)).append(torch.nn.Dropout())
    found = goldstein.torch.certify(
        fine, torch.nn.CrossEntropyLoss(), cut(*samples(), 8), delta=0.01, max_calls=10
    )
    assert found.meta["samples"] == 45


def loader(kind: str) -> DataLoader:
    inputs, labels = samples()
    data = TensorDataset(inputs, labels)
    torch.manual_seed(5)
    if kind == "drops":
        return DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    if kind == "weighted":
        weights = 1.0 + labels.double()
        return DataLoader(data, batch_size=8, sampler=WeightedRandomSampler(weights, 45))
    if kind == "augmented":
        noisy = [(x, int(y)) for x, y in zip(inputs, labels)]

        def collate(rows):
            return torch.stack([x + 0.1 * torch.randn(4) for x, _ in rows]), torch.tensor(
                [y for _, y in rows]
            )

        return DataLoader(noisy, batch_size=8, collate_fn=collate)
    return DataLoader(data, batch_size=8, shuffle=True)


@pytest.mark.parametrize("limit", [0, 2**28])
@pytest.mark.parametrize("kind", ["drops", "weighted", "augmented"])
def test_data_that_change_between_passes_are_refused(
    kind: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_batches, "KEPT_BYTES", limit)
    with pytest.raises(InputError, match=r"not deterministic.*other samples"):
        goldstein.torch.certify(model(), torch.nn.CrossEntropyLoss(), loader(kind), delta=0.01)


@pytest.mark.parametrize("limit", [0, 2**28])
def test_shuffling_is_fine(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_batches, "KEPT_BYTES", limit)
    net, loss_fn = model(), torch.nn.CrossEntropyLoss(weight=CLASS_WEIGHTS)
    shuffled = goldstein.torch.DataOracle(net, loss_fn, loader("shuffles"))
    whole = goldstein.torch.DataOracle(net, loss_fn, [samples()])
    for _ in range(2):
        np.testing.assert_allclose(
            shuffled.gradient(whole.start), whole.gradient(whole.start), rtol=1e-9, atol=1e-13
        )


class Counting:
    def __init__(self, batches: list) -> None:
        self.batches, self.passes = batches, 0

    def __iter__(self):
        self.passes += 1
        return iter(self.batches)


@pytest.mark.parametrize("kept", [True, False])
def test_small_data_are_read_twice_and_large_data_in_every_pass(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:
        monkeypatch.setattr(kept_batches, "KEPT_BYTES", 100)
    data = Counting(cut(*samples(), 8))
    oracle = goldstein.torch.DataOracle(model(), torch.nn.CrossEntropyLoss(), data)
    data.passes = 0
    for _ in range(5):
        oracle.gradient(oracle.start)
    assert data.passes == (2 if kept else 7)


def test_a_loader_may_refill_one_buffer() -> None:
    """What is kept are copies: a loader that yields the same memory again does no harm."""
    inputs, labels = samples(40)

    class Refilling:
        def __iter__(self):
            x, y = torch.empty_like(inputs[:8]), torch.empty_like(labels[:8])
            for begin in range(0, 40, 8):
                x.copy_(inputs[begin : begin + 8])
                y.copy_(labels[begin : begin + 8])
                yield x, y

    net, loss_fn = model(), torch.nn.CrossEntropyLoss()
    refilled = goldstein.torch.DataOracle(net, loss_fn, Refilling())
    expected = float(loss_fn(net(inputs), labels).detach())
    assert refilled.value(refilled.start) == pytest.approx(expected, rel=1e-12)


def test_a_loss_of_one_batch_size_only_is_refused_with_a_reason() -> None:
    weights = torch.rand(8, 1, dtype=torch.float64)
    inputs = torch.randn(16, 4, dtype=torch.float64)
    data = cut(inputs, torch.randint(0, 2, (16, 1)).double(), 8)
    loss_fn = torch.nn.BCEWithLogitsLoss(weight=weights)
    with pytest.raises(InputError, match=r"batches of any size must work; or give all data"):
        goldstein.torch.certify(model(1), loss_fn, data, delta=0.1)
    assert goldstein.torch.certify(model(1), loss_fn, data[:1], delta=0.1, max_calls=5).eps > 0.0


@pytest.mark.parametrize("size", [1, 3, 8])
def test_the_inspection_costs_two_passes(size: int) -> None:
    """Every sample is evaluated twice, in two groupings; only the first batch once more."""
    inputs, labels = samples(40)
    seen: list[int] = []

    def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        seen.append(len(target))
        return torch.nn.functional.cross_entropy(output, target)

    oracle = goldstein.torch.DataOracle(model(), loss_fn, cut(inputs, labels, size))
    oracle.value(oracle.start)
    passes = sum(seen) - 40  # the last pass is the one that was asked for
    assert passes == 2 * 40 + size
    assert len(set(seen)) > 1


def test_batches_are_joined_by_what_is_computed_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that computes much for each sample keeps the batches it was given."""
    monkeypatch.setattr(kept_batches, "JOINED_NUMBERS", 4000)
    inputs, labels = samples(64)
    sizes: list[int] = []

    def loss_fn(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        sizes.append(len(target))
        return torch.nn.functional.cross_entropy(output, target)

    def largest(width: int) -> int:
        net = torch.nn.Sequential(
            torch.nn.Linear(inputs.shape[1], width), torch.nn.ReLU(), torch.nn.Linear(width, 3)
        )
        oracle = goldstein.torch.DataOracle(net, loss_fn, cut(inputs, labels, 8))
        oracle.value(oracle.start)
        sizes.clear()
        oracle.value(oracle.start + 1.0)
        assert sum(sizes) == 64
        return max(sizes)

    assert largest(4) == 64
    assert largest(256) == 8


def test_a_single_batch_is_compared_with_its_halves() -> None:
    """Other processes may hold more batches, and then it must not be any function."""
    net = model()
    oracle = goldstein.torch.DataOracle(net, contrastive, [samples(16)])
    oracle.shared = True  # nothing is reduced before the inspection ends
    with pytest.raises(InputError, match="not the mean over its samples"):
        inspect_mean(oracle, lambda batch: None)
    oracle.shared = False
    inspect_mean(oracle, lambda batch: None)
