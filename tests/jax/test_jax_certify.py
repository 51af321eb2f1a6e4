"""Certificates of JAX models: the mean over all samples, or a refusal with its reason."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import goldstein as gs
import goldstein.jax
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import data_mean as kept_batches


def params() -> dict:
    rng = np.random.default_rng(0)
    return {
        "hidden": {"w": jnp.asarray(rng.normal(size=(3, 4)), jnp.float32), "b": jnp.ones(4)},
        "out": jnp.asarray(rng.normal(size=4), jnp.float32),
    }


def outputs(p: dict, x: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ p["hidden"]["w"] + p["hidden"]["b"]) @ p["out"]


def loss(p: dict, batch: dict) -> jax.Array:
    return jnp.abs(outputs(p, batch["x"]) - batch["y"]).mean()


def data(size: int, count: int = 30) -> list[dict]:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    y = np.abs(x).sum(axis=1)
    return [
        {"x": x[begin : begin + size], "y": jnp.asarray(y[begin : begin + size])}
        for begin in range(0, count, size)
    ]


@pytest.mark.parametrize("size", [1, 4, 7, 30])
def test_values_and_gradients_are_those_of_all_samples(size: int) -> None:
    oracle = goldstein.jax.DataOracle(loss, params(), data(size))
    whole = goldstein.jax.oracle(lambda p: loss(p, data(30)[0]), params())
    np.testing.assert_array_equal(oracle.start, whole.start)
    y = oracle.start + 0.01
    assert oracle.value(y) == pytest.approx(whole.value(y), rel=1e-12)
    np.testing.assert_allclose(oracle.gradient(y), whole.gradient(y), rtol=1e-10, atol=1e-13)
    assert oracle.samples == 30


def test_certificate_verifies_and_says_what_was_done() -> None:
    request = {"delta": 0.05, "max_calls": 60, "seed": 4}
    certificate = goldstein.jax.certify(loss, params(), data(8), **request)
    assert certificate.label == "conditional"
    assert certificate.meta["samples"] == 30
    assert certificate.meta["evaluated_in"] == "float64"
    assert certificate.meta["converted_from"] == "float32"
    assert certificate.verify(goldstein.jax.DataOracle(loss, params(), data(8))).ok
    assert not certificate.verify(goldstein.jax.DataOracle(loss, params(), data(8)[1:])).ok
    again = goldstein.jax.certify(loss, params(), data(8), **request)
    np.testing.assert_array_equal(again.points, certificate.points)
    other = goldstein.jax.certify(loss, params(), data(11), **request)
    assert other.eps == pytest.approx(certificate.eps, rel=1e-6)


def test_a_model_at_its_kinks_is_stationary() -> None:
    median = [{"y": np.array([0.0, 1.0, 5.0])}, {"y": np.array([-3.0, 7.0])}]
    found = goldstein.jax.certify(
        lambda p, batch: jnp.abs(p - batch["y"]).mean(), jnp.ones(()), median, delta=1e-3
    )
    assert found.eps < 1e-12


def masked(p: dict, batch: dict) -> jax.Array:
    kept = batch["y"] > 1.5
    return jnp.sum(jnp.abs(outputs(p, batch["x"]) - batch["y"]) * kept) / jnp.sum(kept)


def batch_statistics(p: dict, batch: dict) -> jax.Array:
    out = outputs(p, batch["x"])
    return jnp.abs((out - out.mean()) / out.std() - batch["y"]).mean()


@pytest.mark.parametrize("bad", [masked, batch_statistics])
def test_a_loss_that_depends_on_the_batches_is_refused(bad) -> None:
    with pytest.raises(InputError, match=r"not the mean over its samples.*reduction='sum'"):
        goldstein.jax.certify(bad, params(), data(8), delta=0.1)
    assert goldstein.jax.certify(bad, params(), data(30), delta=0.1, max_calls=5).eps > 0.0


def test_a_sum_is_told_from_a_mean_and_can_be_had() -> None:
    def total(p: dict, batch: dict) -> jax.Array:
        return jnp.abs(outputs(p, batch["x"]) - batch["y"]).sum()

    with pytest.raises(InputError, match="is the sum over its samples"):
        goldstein.jax.certify(total, params(), data(8), delta=0.1)
    with pytest.raises(InputError, match="is the mean over its samples"):
        goldstein.jax.certify(loss, params(), data(8), delta=0.1, reduction="sum")
    summed = goldstein.jax.DataOracle(total, params(), data(8), reduction="sum")
    averaged = goldstein.jax.DataOracle(loss, params(), data(8))
    assert summed.value(summed.start) == pytest.approx(averaged.value(averaged.start), rel=1e-12)


class Random:
    """Other samples in every pass."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __iter__(self):
        rows = self.rng.permutation(30)[:24]
        whole = data(30)[0]
        for part in np.split(rows, 3):
            yield {name: np.asarray(column)[part] for name, column in whole.items()}


@pytest.mark.parametrize("limit", [0, 2**28])
def test_data_that_change_between_passes_are_refused(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_batches, "KEPT_BYTES", limit)
    with pytest.raises(InputError, match=r"not deterministic.*other samples"):
        goldstein.jax.certify(loss, params(), Random(), delta=0.1)


def test_a_coarse_model_is_refused() -> None:
    def coarse(p: dict, batch: dict) -> jax.Array:
        small = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), p)
        return loss(small, batch).astype(jnp.float64)

    with pytest.raises(InputTypeError, match="bfloat16"):
        goldstein.jax.certify(coarse, params(), data(8), delta=0.1)


@pytest.mark.parametrize(
    ("arguments", "kind", "word"),
    [
        ((3, jnp.ones(2), []), InputTypeError, "loss"),
        ((loss, {}, []), InputError, "no numbers"),
        ((loss, jnp.ones(2), iter([])), InputTypeError, "generator"),
        ((loss, jnp.ones(2), []), InputError, "0 samples"),
        ((lambda p, b: p * b.sum(), jnp.ones(2), [np.ones(3)]), InputTypeError, "one number"),
    ],
)
def test_mistakes_are_explained(arguments: tuple, kind: type, word: str) -> None:
    with pytest.raises(kind, match=word):
        goldstein.jax.certify(*arguments, delta=0.1)


def test_progress_is_told_of_every_pass() -> None:
    seen: list[tuple[int, int]] = []
    goldstein.jax.certify(
        loss, params(), data(8), delta=0.1, max_calls=7, progress=lambda *now: seen.append(now)
    )
    assert seen == [(k, 7) for k in range(1, len(seen) + 1)]
    assert len(seen) >= 5
    with pytest.raises(InputTypeError, match="progress"):
        goldstein.jax.certify(loss, params(), data(8), delta=0.1, progress="bar")


def test_the_way_back_to_a_pytree() -> None:
    start = {"a": jnp.ones((2, 3)), "b": [jnp.zeros(()), jnp.full(2, 4.0)]}
    oracle = goldstein.jax.oracle(
        lambda p: jnp.abs(p["a"] - 2).sum() + jnp.abs(p["b"][0]) + jnp.abs(p["b"][1] + 1).sum(),
        start,
    )
    result = gs.minimize(oracle, oracle.start, eps=1e-6, delta=1e-6, rng=0)
    found = oracle.unflatten(result.x)
    assert jax.tree.structure(found) == jax.tree.structure(start)
    assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, start)
    np.testing.assert_allclose(found["a"], 2.0, atol=1e-5)
    np.testing.assert_allclose(found["b"][1], -1.0, atol=1e-5)
    assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(found))
    plain = goldstein.jax.oracle(lambda x: jnp.abs(x).sum())
    np.testing.assert_array_equal(plain.unflatten([1.0, 2.0]), [1.0, 2.0])
    trained = goldstein.jax.DataOracle(loss, params(), data(8))
    back = trained.unflatten(trained.start)
    np.testing.assert_array_equal(back["hidden"]["w"], params()["hidden"]["w"])


def test_one_batch_in_place_of_a_list_is_explained() -> None:
    def loss(params, batch):
        inputs, targets = batch
        return jnp.abs(inputs @ params - targets).mean()

    data = (np.ones((5, 3)), np.ones(5))
    with pytest.raises(gs.OracleError, match=r"first one are: \(5, 3\).*pass \[data\]"):
        goldstein.jax.certify(loss, np.zeros(3), data, delta=0.1)


def test_a_function_that_uses_numpy_hears_what_it_gets() -> None:
    fun = goldstein.jax.oracle(lambda w: np.abs(w).sum() if w[0] > 0 else w.sum(), jnp.ones(3))
    with pytest.raises(gs.OracleError, match=r"arrays of JAX.*use jax.numpy in it, not NumPy"):
        gs.minimize(fun, fun.start, eps=1e-3, delta=1e-3, rng=0)
