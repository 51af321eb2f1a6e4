"""The models: fused passes agree with their trees; Lipschitz constants of the sublevel set hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse
from tests.limits import require_one_gradient

import goldstein as gs
from goldstein.errors import InputError, KinkError
from goldstein.models import margin_svm, relu_one_layer, relu_two_layer

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 3))
TARGETS = {
    "vector": RNG.standard_normal(20),
    "table": RNG.standard_normal((20, 2)),
    "binary": RNG.integers(0, 2, 20),
    "classes": RNG.integers(0, 3, 20),
}
WEIGHTS = RNG.integers(0, 4, 20)
CASES = {
    "svm": lambda: margin_svm(X, 0.7, 0.3),
    "svm sparse": lambda: margin_svm(sparse.csr_array(X * (np.abs(X) > 0.7)), 1.0, 1.0),
    "svm without ridge": lambda: margin_svm(X, 1.0, 0.0),
}
for _make in (relu_one_layer, relu_two_layer):
    for _loss, _target in [
        ("squared", "vector"),
        ("squared", "table"),
        ("huber", "vector"),
        ("pseudo_huber", "table"),
        ("logistic", "binary"),
        ("logistic", "classes"),
    ]:
        _key = f"{_make.__name__} {_loss} {_target}"
        CASES[_key] = lambda m=_make, ls=_loss, t=_target: m(
            X, TARGETS[t], 4, loss=ls, ridge=0.1, mean=True
        )
        CASES[_key + " weighted"] = lambda m=_make, ls=_loss, t=_target: m(
            X, TARGETS[t], 4, loss=ls, ridge=0.1, mean=True, weights=WEIGHTS
        )
        CASES[_key + " plain"] = lambda m=_make, ls=_loss, t=_target: m(
            X, TARGETS[t], 3, loss=ls, bias=False
        )
CASES["output bias"] = lambda: relu_two_layer(X, TARGETS["table"], 4, output_bias=True, ridge=0.2)
CASES["output bias vector"] = lambda: relu_two_layer(X, TARGETS["vector"], 4, output_bias=True)
CASES["sparse net"] = lambda: relu_two_layer(
    sparse.csr_array(X * (np.abs(X) > 0.7)), TARGETS["vector"], 4
)
cases = pytest.mark.parametrize("case", sorted(CASES))


@cases
def test_fused_pass_tree_and_differences_agree(case):
    F = CASES[case]()
    for seed in range(3):
        x = F.start(seed)
        assert F.value(x) == pytest.approx(F.tree.value(x), rel=1e-12)
        require_one_gradient(F, x)


@cases
def test_kinks_are_refused(case):
    F = CASES[case]()
    with pytest.raises(KinkError):
        F.gradient(np.zeros(F.dim))


@cases
def test_solver_constant_bounds_gradients_near_the_sublevel_set(case):
    F = CASES[case]()
    rng = np.random.default_rng(1)
    x, delta = F.start(5), 0.2
    bound, level = F.solver_lipschitz(x, delta), F.value(x)
    seen = 0
    for _ in range(300):
        y = x + rng.standard_normal(x.size) * rng.choice([0.05, 0.3, 1.0])
        y *= rng.random() if rng.random() < 0.5 else 1.0
        if F.value(y) > level:
            continue
        step = rng.standard_normal(x.size)
        z = y + delta * step / np.linalg.norm(step)
        assert np.linalg.norm(F.gradient(z)) <= bound
        seen += 1
    assert seen > 5


def test_start_is_reproducible():
    F = margin_svm(X)
    np.testing.assert_array_equal(F.start(3), F.start(3))
    assert (F.start(3) != F.start(4)).any()


def test_svm_constant():
    # sqrt(2 F(x1)) + delta + sqrt(n)|Z|/rho for Z = [[1,2,0],[0,1,-1]]: F(0) = 2, delta = .1.
    Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    F = margin_svm(Z)
    bound = F.solver_lipschitz(np.zeros(3), 0.1)
    assert bound == pytest.approx(2.0 + 0.1 + math.sqrt(2) * math.sqrt(6), rel=1e-12)
    assert bound == pytest.approx(5.5641016, abs=1e-7)


def test_multi_output_is_the_sum_of_single_outputs_for_fixed_weights():
    Y = TARGETS["table"]
    C = RNG.standard_normal((3, 2))
    both = relu_one_layer(X, Y, 3, output_weights=C)
    parts = [relu_one_layer(X, Y[:, k], 3, output_weights=C[:, k]) for k in range(2)]
    w = both.start(0)
    assert both.value(w) == pytest.approx(sum(p.value(w) for p in parts))


@pytest.mark.parametrize("make", [relu_one_layer, relu_two_layer])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    ("loss", "kind"),
    [("squared", "table"), ("huber", "vector"), ("logistic", "binary"), ("logistic", "classes")],
)
def test_weight_is_repetition(make, mean, loss, kind):
    y = TARGETS[kind]
    options = {"loss": loss, "ridge": 0.1, "mean": mean}
    weighted = make(X, y, 3, weights=WEIGHTS, **options)
    rows = np.repeat(np.arange(20), WEIGHTS)
    repeated = make(X[rows], y[rows], 3, **options)
    w = weighted.start(0)
    np.testing.assert_array_equal(w, repeated.start(0))
    assert weighted.value(w) == pytest.approx(repeated.value(w), rel=1e-13)
    np.testing.assert_allclose(weighted.gradient(w), repeated.gradient(w), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", ["vector", "binary", "classes"])
def test_near_certificate_of_the_weighted_objective_is_about_that_objective(kind):
    y = TARGETS[kind]
    options = {"loss": "squared" if kind == "vector" else "logistic", "ridge": 0.05, "mean": True}
    F = relu_two_layer(X, y, 2, weights=WEIGHTS, **options)
    found = gs.minimize(F, F.start(0), eps=1e-4, delta=1e-3, stationarity="near", rng=0)
    assert found.success
    assert found.certificate.verify(F).label == "certified"
    rows = np.repeat(np.arange(20), WEIGHTS)
    assert found.certificate.verify(relu_two_layer(X[rows], y[rows], 2, **options)).eps <= 2e-4
    assert not found.certificate.verify(relu_two_layer(X, y, 2, **options)).ok


@pytest.mark.parametrize("weights", [None, WEIGHTS / 7])
def test_moduli_of_the_cross_entropy_cover_the_weights(weights):
    F = relu_one_layer(X, TARGETS["classes"], 3, loss="logistic", weights=weights, bias=False)
    rng = np.random.default_rng(3)
    ball = (np.zeros(F.dim), 2.0)
    bound = F.lipschitz(ball)
    for _ in range(50):
        a = rng.standard_normal(F.dim)
        a *= 2 * rng.random() / np.linalg.norm(a)
        assert np.linalg.norm(F.gradient(a)) <= bound


def test_labels_may_be_few_when_the_classes_are_told():
    few = relu_two_layer(X, np.ones(20, dtype=int), 2, loss="logistic", classes=3)
    assert few.setting.loss.outputs == 3


@pytest.mark.parametrize(
    "build",
    [
        lambda: relu_two_layer(X, TARGETS["vector"], 2, weights=-WEIGHTS),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, weights=0 * WEIGHTS),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, weights=WEIGHTS[:3]),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, weights=WEIGHTS * np.nan),
        lambda: margin_svm([[1.0, np.nan]]),
        lambda: margin_svm([1.0, 2.0]),
        lambda: margin_svm(X, rho=0.0),
        lambda: margin_svm(X, lam=-1.0),
        lambda: relu_two_layer(X, TARGETS["vector"], 0),
        lambda: relu_two_layer(X, TARGETS["vector"][:3], 2),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, loss="cubic"),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, loss="logistic"),
        lambda: relu_two_layer(X, TARGETS["vector"], 2, ridge=-1.0),
        lambda: relu_one_layer(X, TARGETS["vector"], 2, output_weights=[1.0]),
    ],
)
def test_mistakes_are_named(build):
    with pytest.raises(InputError):
        build()


def test_a_wider_neighbourhood_does_not_answer_from_the_old_one() -> None:
    model = gs.models.margin_svm(np.eye(2), 1.0, 1.0)
    model.neighbourhood = 1e-3
    for x in (np.array([2.0, 2.0]), np.array([2.0001, 2.0001])):
        model.gradient(x)
    model.neighbourhood = 10.0
    y = np.array([0.5, 0.5])
    assert np.array_equal(model.gradient(y), model.tree.gradient(y))
    assert model.value(y) == model.tree.value(y)
