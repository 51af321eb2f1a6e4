"""Functions of JAX, PyTorch, ONNX and CVXPY as expressions, against the packages themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs

A = np.random.default_rng(0).standard_normal((6, 3))
B = np.random.default_rng(1).standard_normal(6)

# --- JAX -----------------------------------------------------------------------------------------

jax = pytest.importorskip("jax")
jnp = jax.numpy


def lying(x: Any) -> Any:
    """A function whose derivative rule lies."""

    @jax.custom_jvp
    def f(u: Any) -> Any:
        return jnp.sin(u)

    f.defjvp(lambda primal, tangent: (f(primal[0]), 7.0 * tangent[0]))
    return f(x).sum()


JAX: dict[str, Callable[[Any], Any]] = {
    "fit": lambda x: jnp.abs(A @ x - B).sum() + jnp.linalg.norm(x),
    "activations": lambda x: (jax.nn.relu(A @ x) + jax.nn.elu(B)).max() + jax.nn.sigmoid(x).prod(),
    "softmax": lambda x: (
        jax.nn.logsumexp(A @ x) + jax.nn.softplus(x).sum() - jax.nn.log_softmax(x)[1]
    ),
    "order": lambda x: jnp.median(A @ x) + jnp.sort(x)[0] + jnp.quantile(A @ x, 0.3) + jnp.std(x),
    "where": lambda x: jnp.where(x > 0, x, 0.1 * x).sum() + jnp.clip(x, -1, 1) @ x,
    "loops": lambda x: (
        jax.lax.fori_loop(0, 3, lambda i, c: 0.5 * c + jnp.sin(x[i]), 0.0)
        + jax.lax.scan(lambda c, r: (jnp.abs(c - r), c), 0.0, x)[0]
    ),
    "products": lambda x: jnp.einsum("i,j->", x, B) + jnp.outer(x, x).max() + jnp.cumsum(x).max(),
    "indices": lambda x: x.at[1].set(2.0).sum() + jnp.tril(jnp.outer(x, x)).sum() + x[::-1][0],
    "cond": lambda x: jax.lax.cond(x[0] > 0, lambda: 2.0 * x[0], lambda: 3.0 * x[0]) + x @ x,
    "quotient": lambda x: x[0] / (1.0 + x[1] ** 2) + jnp.hypot(x[0], x[1]) + 2.0 ** x[2],
    "a lying rule": lying,
    "stop_gradient": lambda x: jax.lax.stop_gradient(jnp.exp(x)).sum() + jnp.abs(x).sum(),
}


@pytest.mark.parametrize("name", JAX)
def test_jax_functions_are_read(name: str) -> None:
    import goldstein.jax as door

    F = door.trace(JAX[name], np.array([0.3, -0.7, 0.9]))
    with jax.enable_x64(True):
        x, v = np.random.default_rng(2).standard_normal((2, 3))
        x, v, f = jnp.asarray(x), jnp.asarray(v), JAX[name]
        assert F.value(np.array(x)) == pytest.approx(float(f(x)), rel=1e-12, abs=1e-12)
        slope = (float(f(x + 1e-6 * v)) - float(f(x - 1e-6 * v))) / 2e-6
    assert F.gradient(np.array(x)) @ np.array(v) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: jnp.floor(x).sum(), "floor"),
        (lambda x: x[jnp.argmin(x)], "argmin"),
        (lambda x: jnp.where(x[0] >= 0, x[1], 0.0), "jumps by"),
        (lambda x: jax.lax.while_loop(lambda c: c < 3.0, lambda c: 2.0 * c, x[0]), "while"),
        (lambda x: x[:2], "one number"),
    ],
)
def test_what_jax_does_by_value_is_refused(f: Any, words: str) -> None:
    import goldstein.jax as door

    with pytest.raises(gs.TraceError, match=words):
        door.trace(f, np.ones(3))


def test_float32_data_of_jax_are_said_to_be_so() -> None:
    import goldstein.jax as door

    with jax.enable_x64(False):
        data = jnp.array([0.1, 0.2, 0.3], dtype=jnp.float32)
    with pytest.warns(UserWarning, match="float32"):
        F = door.trace(lambda x: jnp.abs(x - data.astype(x.dtype)).sum(), np.ones(3))
    assert F.value(np.array(np.float32([0.1, 0.2, 0.3]), dtype=float)) == 0.0


def test_jax_end_to_end() -> None:
    import goldstein.jax as door

    def f(p: Any) -> Any:
        return jnp.abs(p["a"] - jnp.exp(p["b"])).sum() + p["a"] @ p["a"] + p["b"] @ p["b"]

    F = door.trace(f, {"a": np.ones(2), "b": np.ones(2)})
    res = gs.minimize(F, np.ones(4), eps=1e-6, delta=1e-5, stationarity="near", rng=0)
    assert res.success
    assert res.certificate.verify(F).ok


# --- PyTorch -------------------------------------------------------------------------------------


def test_torch_functions_are_read() -> None:
    import goldstein.torch as door

    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2), torch.nn.Tanh()
    ).double()
    X, Y = torch.tensor(A), torch.tensor(np.stack([B, B], axis=1))
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    cases: dict[str, tuple[Any, Any]] = {
        "module": (lambda: F.l1_loss(net(X), Y) + F.huber_loss(net(X), Y, delta=0.5), net),
        "labels": (lambda: F.cross_entropy(net(X), labels), net),
        "two tensors": (
            lambda a, b: a.abs().max() + torch.maximum(a, b).sum() + torch.sort(b)[0][1]
            + b.median() + b.norm() + torch.logsumexp(a, 0) + F.softplus(b).sum()
            + torch.where(a > 0, a, 0.1 * a).sum() + torch.clamp(b, -1, 1).sum() + a.std()
            + torch.topk(b, 2)[0].sum() + F.elu(a).sum() + torch.outer(a, b).amax(),
            [torch.randn(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)]),
        "a dict": (lambda p: (p["a"] @ p["b"]).abs().sum(),
                   {"a": torch.ones(2, 3, dtype=torch.float64), "b": torch.ones(3).double()}),
    }  # fmt: skip
    for name, (f, params) in cases.items():
        traced, oracle = door.trace(f, params), door.oracle(f, params)
        x = oracle.start + 0.1 * np.random.default_rng(3).standard_normal(oracle.dim)
        assert traced.value(x) == pytest.approx(oracle.value(x), rel=1e-12), name
        np.testing.assert_allclose(traced.gradient(x), oracle.gradient(x), atol=1e-12)
    with pytest.raises(gs.TraceError, match="floor"):
        door.trace(lambda a: a.floor().sum(), torch.ones(2))
    even = door.trace(lambda a: a.median(), torch.arange(4.0))
    assert even.value(np.array([4.0, 1.0, 2.0, 3.0])) == 2.0  # the lower one


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda x: x[x > 0].sum(), "index"),
        (lambda x: x.abs().sum() if bool((x > 0).any()) else x.sum(), "decides by values"),
    ],
)
def test_torch_code_that_chooses_by_value_is_refused(fn, words: str) -> None:
    torch, door = pytest.importorskip("torch"), pytest.importorskip("goldstein.torch")
    with pytest.raises(gs.TraceError, match=words):
        door.trace(fn, torch.tensor([1.0, -2.0, 3.0]))


def test_torch_end_to_end() -> None:
    import goldstein.torch as door

    torch = pytest.importorskip("torch")
    X, Y = torch.tensor(A), torch.tensor(B)
    F = door.trace(
        lambda w: (torch.tanh(X @ w) - Y).abs().mean() + 0.1 * w.abs().sum(), torch.ones(3)
    )
    res = gs.minimize(F, np.full(3, 0.1), eps=1e-6, delta=1e-5, stationarity="near", rng=0)
    assert res.success


# --- ONNX ----------------------------------------------------------------------------------------


def network(nodes: list[Any], data: dict[str, Any], shape: list[int]) -> Any:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    put = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op, given, [out], **options) for op, given, out, options in nodes], "g",
        [put("x", kind, shape)], [put("y", kind, None)],
        [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in data.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def acas() -> Any:
    """The operators of the ACAS Xu networks, smaller."""
    rng = np.random.default_rng(0)
    nodes = [
        ("Sub", ["x", "m"], "a", {}), ("Flatten", ["a"], "b", {}), ("MatMul", ["b", "W1"], "c", {}),
        ("Add", ["c", "b1"], "d", {}), ("Relu", ["d"], "e", {}), ("MatMul", ["e", "W2"], "f", {}),
        ("Add", ["f", "b2"], "y", {}),
    ]  # fmt: skip
    data = {"m": rng.standard_normal((1, 1, 1, 5)), "W1": rng.standard_normal((5, 7)),
            "b1": rng.standard_normal(7), "W2": rng.standard_normal((7, 5)),
            "b2": rng.standard_normal(5)}  # fmt: skip
    return network(nodes, data, [1, 1, 1, 5])


def test_onnx_networks_are_read(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    import goldstein.onnx as door

    rng = np.random.default_rng(1)
    conv = network(
        [("Conv", ["x", "W", "B"], "c", {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
         ("BatchNormalization", ["c", "s", "t", "mu", "va"], "d", {}),
         ("LeakyRelu", ["d"], "e", {"alpha": 0.125}),
         ("MaxPool", ["e"], "p", {"kernel_shape": [2, 2]}), ("Flatten", ["p"], "q", {}),
         ("Gemm", ["q", "G", "h"], "z", {"transB": 1}), ("Sigmoid", ["z"], "y", {})],
        {"W": rng.standard_normal((4, 2, 3, 3)), "B": rng.standard_normal(4), "s": np.ones(4),
         "t": rng.standard_normal(4), "mu": rng.standard_normal(4), "va": np.ones(4),
         "G": 0.1 * rng.standard_normal((3, 16)), "h": rng.standard_normal(3)}, [1, 2, 6, 6],
    )  # fmt: skip
    for model in (acas(), conv):
        onnx.save(model, tmp_path / "net.onnx")
        F = door.load(tmp_path / "net.onnx")
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = rng.standard_normal(shape).astype(np.float32)
        (there,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_allclose(F(x.astype(float).ravel()), there, rtol=1e-4, atol=1e-5)
    with pytest.raises(gs.TraceError, match="Floor"):
        door.load(network([("Floor", ["x"], "y", {})], {}, [1, 2]))


def test_onnx_end_to_end() -> None:
    """The largest margin that an input can violate, near stationary, proved exactly."""
    import goldstein.onnx as door

    out = door.load(acas())[0]
    x = gs.Variable(5)
    F = out.over(x)[0] - np.max(out.over(x)[1:]) + gs.sum_squares(x)
    res = gs.minimize(F, np.zeros(5), eps=1e-6, delta=1e-5, stationarity="near", rng=0)
    assert res.success
    assert res.certificate.verify(F).ok


# --- CVXPY ---------------------------------------------------------------------------------------


def test_cvxpy_problems_are_read() -> None:
    cp = pytest.importorskip("cvxpy")
    import goldstein.cvxpy as door

    x, X = cp.Variable(3, name="x"), cp.Variable((2, 3), name="X")
    goals = [
        cp.norm1(A @ x - B) + 0.1 * cp.norm(x, 2) + cp.sum_squares(x),
        cp.sum(cp.huber(A @ x - B, 1.5)) + cp.norm_inf(x) + cp.max(x) + cp.sum_largest(x, 2),
        cp.sum(cp.logistic(A @ x)) + cp.log_sum_exp(x) + cp.sum(cp.exp(x)) + cp.sum(cp.pos(x - 1)),
        cp.quad_form(x, np.eye(3) * 2) + cp.norm(x, 3) - cp.min(x)
        + cp.sum(cp.power(cp.abs(x), 1.5)),
        cp.sum(cp.abs(X @ np.arange(3.0))) + 2 * X[1, 2] + cp.norm(X, "fro") + cp.trace(X[:, :2])
        + cp.vec(X, order="F")[3] + cp.sum(cp.maximum(X, 2 * X), axis=0)[1],
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for goal in goals:
        read = door.read(cp.Problem(cp.Minimize(goal)))
        z = rng.standard_normal(read.x0.size)
        for v in read.variables:
            v.value = read.unpack(z)[v.name()]  # columns first, as CVXPY has it
        assert read.objective.value(z) == pytest.approx(float(goal.value), rel=1e-12, abs=1e-12)
    with pytest.raises(gs.TraceError, match="lambda_max"):
        door.read(
            cp.Problem(cp.Minimize(cp.lambda_max(cp.reshape(x[[0, 1, 1, 2]], (2, 2), order="F"))))
        )
    with pytest.raises(gs.TraceError, match="integer"):
        door.read(cp.Problem(cp.Minimize(cp.sum(cp.Variable(2, integer=True)))))


def test_cvxpy_end_to_end() -> None:
    cp = pytest.importorskip("cvxpy")
    import goldstein.cvxpy as door

    x = cp.Variable(3, name="x")
    convex = cp.Problem(cp.Minimize(cp.norm1(A @ x - B)), [cp.sum(x) <= 0.2, x[0] >= -1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        convex.solve(solver="CLARABEL")
    proof = gs.certify_result(convex, delta=1e-3, rng=0)
    assert proof.eps < 1e-6
    # A problem that CVXPY refuses: least absolute values on a sphere.
    sphere = cp.Problem(cp.Minimize(cp.norm1(A @ x - B)), [cp.norm(x) == 1])
    assert not sphere.is_dcp()
    read = door.read(sphere)
    res = gs.minimize(read.objective, np.array([1.0, 0.1, 0.1]), constraints=read.constraints,
                      eps=1e-4, delta=1e-3, rng=0)  # fmt: skip
    assert res.success
    assert np.linalg.norm(read.unpack(res.x)["x"]) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(TypeError, match="fun is missing"):
        gs.certify_result({"x": [1.0]}, delta=0.1)
