"""A model is one function for good: its data cannot be exchanged, and proofs read the tree."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.limits import limiting_gradients

from goldstein.calculus.expression import Expression
from goldstein.checker.sides import point_at
from goldstein.models import margin_svm, multiclass_margin, relu_one_layer, relu_two_layer
from goldstein.models.losses import Loss

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 3))
SPARSE = sparse.csr_array(X * (np.abs(X) > 0.7))
Y = RNG.standard_normal(12)
LABELS = RNG.integers(0, 3, 12)
WEIGHTS = RNG.random(12) + 0.5
MODELS = {
    "margin": lambda: margin_svm(X, 0.7, 0.3, weights=WEIGHTS, shift=0.1, intercept=True),
    "margin sparse": lambda: margin_svm(SPARSE, 0.7, 0.3),
    "multiclass": lambda: multiclass_margin(X, LABELS, 3, 0.7, 0.3, weights=WEIGHTS, shift=0.1),
    "one layer": lambda: relu_one_layer(X, Y, 2, ridge=0.1, mean=True, weights=WEIGHTS),
    "one layer huber": lambda: relu_one_layer(X, Y, 2, loss="huber", threshold=0.5),
    "two layers": lambda: relu_two_layer(X, Y, 2, ridge=0.1, output_bias=True),
    "two layers classes": lambda: relu_two_layer(X, LABELS, 2, loss="logistic", weights=WEIGHTS),
}
models = pytest.mark.parametrize("case", sorted(MODELS))

#: Set by who searches; changes the speed of answers and no answer.
ADJUSTABLE = {"neighbourhood"}


def public(thing: Any) -> list[str]:
    return [name for name in vars(thing) if not name.startswith("_") and name not in ADJUSTABLE]


def parts(model: Any) -> Iterator[Any]:
    """The model, and what it is made of outside its tree."""
    yield model
    for name in public(model):
        value = getattr(model, name)
        if isinstance(value, Loss) or (
            dataclasses.is_dataclass(value) and not isinstance(value, type)
        ):
            yield from parts(value)


@models
def test_no_attribute_can_be_exchanged(case: str) -> None:
    for part in parts(MODELS[case]()):
        assert public(part)
        for name in public(part):
            with pytest.raises(AttributeError):
                setattr(part, name, getattr(part, name))


@models
def test_the_tree_cannot_be_exchanged(case: str) -> None:
    F = MODELS[case]()
    with pytest.raises(AttributeError):
        F.tree = F.tree
    assert F.tree is F.args[0]


@models
def test_no_array_can_be_written_to(case: str) -> None:
    arrays = 0
    for part in parts(MODELS[case]()):
        for name in public(part):
            value = getattr(part, name)
            if isinstance(value, Expression):
                continue
            entries = value.data if sparse.issparse(value) else value
            if isinstance(entries, np.ndarray):
                assert not entries.flags.writeable, (type(part).__name__, name)
                arrays += 1
    assert arrays


@models
def test_the_data_given_stay_the_caller_s(case: str) -> None:
    MODELS[case]()
    for data in (X, Y, LABELS, WEIGHTS, SPARSE.data):
        assert data.flags.writeable


@models
def test_copies_are_models_too(case: str) -> None:
    F = MODELS[case]()
    x = F.start(0)
    for twin in (copy.deepcopy(F), pickle.loads(pickle.dumps(F))):
        assert twin.value(x) == F.value(x)
        np.testing.assert_array_equal(twin.gradient(x), F.gradient(x))


def test_entries_exchanged_in_a_sparse_handle_do_not_reach_the_proof() -> None:
    F = margin_svm(SPARSE, 0.7, 0.3)
    x = F.start(0)
    before = limiting_gradients(F, x, [np.ones(3)])
    F.Z.data = 2.0 * F.Z.data
    assert limiting_gradients(F.tree, x, [np.ones(3)]) == before


def test_limits_of_gradients_come_from_the_tree() -> None:
    # Large enough for enclosures; two rows on their kinks.
    rng = np.random.default_rng(5)
    Z = rng.standard_normal((6000, 8))
    Z[:2] = np.eye(8)[:2]
    weights = rng.random(6000)
    F = margin_svm(Z, 0.5, 0.1, weights=weights)
    pivot = [Fraction(1, 2), Fraction(0)] + [Fraction(k, 10) for k in range(6)]
    ways = rng.standard_normal((4, 8))
    # Whoever insists can reach the attributes; the checker does not look at them.
    F.__dict__["rho"] = 7.0
    F.__dict__["Z"] = 2.0 * Z
    F.__dict__["problem"] = margin_svm(-Z, 0.5, 0.1).problem
    claimed = point_at(F.program(), pivot, 4).limits(ways)
    true = point_at(margin_svm(Z, 0.5, 0.1, weights=weights).program(), pivot, 4).limits(ways)
    assert claimed.exact is None
    assert (np.abs(claimed.mid - true.mid) <= claimed.rad + true.rad).all()
    assert claimed.rad.max() <= 1e-6
