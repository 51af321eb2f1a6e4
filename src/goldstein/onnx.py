"""`load`: a feed-forward network in an ONNX file as an expression of its input.

Weights are the numbers in the file, exactly. Nothing is rounded after operations: what is proved is
about the network in real numbers, not in float32.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.calculus import Expression, Variable, atoms, operators
from goldstein.calculus.tracing import Sharing, TraceError
from goldstein.errors import GoldsteinError
from goldstein.extras import from_extra

with from_extra("goldstein.onnx", "the package onnx", "onnx"):
    import onnx
    from onnx import numpy_helper


def load(path: Any) -> Expression:
    """Return the output of a network as an expression of its input.

    Parameters
    ----------
    path : str, Path or onnx.ModelProto
        Feed-forward networks: affine maps, ReLU and other activations, maxima, convolutions.
        Dimensions of the input that are not given count as 1.

    Returns
    -------
    Expression
        Of one vector, the entries of the input in order; it has the shape of the output.

    Examples
    --------
    >>> import goldstein as gs, goldstein.onnx
    >>> from onnx import TensorProto, helper
    >>> put = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n])
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
    ...                           [put("x", 2)], [put("y", 2)])
    >>> goldstein.onnx.load(helper.make_model(graph))(np.array([-1.0, 2.0]))
    array([[0., 2.]])
    """
    model = path if isinstance(path, onnx.ModelProto) else onnx.load(str(path))
    graph = model.graph
    known: dict[str, Any] = {t.name: _exact(numpy_helper.to_array(t)) for t in graph.initializer}
    known[""] = None
    inputs = [i for i in graph.input if i.name not in known]
    if len(inputs) != 1:
        raise TraceError(f"the network has {len(inputs)} inputs, expected one.")
    shape = [max(1, d.dim_value) for d in inputs[0].type.tensor_type.shape.dim]
    known[inputs[0].name] = Variable(math.prod(shape)).reshape(shape)
    shared = Sharing()
    for node in graph.node:
        rule = _RULES.get(node.op_type)
        if rule is None:
            raise TraceError(
                f"the operator {node.op_type} of ONNX is not in the language of feed-forward "
                f"networks with known kinks (node {node.name or node.output[0]})."
            )
        options = {a.name: _attribute(a) for a in node.attribute}
        try:
            found = rule(options, *(known[name] for name in node.input))
        except GoldsteinError as failure:
            raise TraceError(f"{node.op_type} in the network: {failure}") from failure
        found = shared(found) if isinstance(found, Expression) else found
        known |= dict(zip(node.output, found if isinstance(found, list) else [found]))
    answer = known[graph.output[0].name]
    if not isinstance(answer, Expression):
        raise TraceError("the output of the network does not depend on its input.")
    return answer


def _exact(array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _attribute(a: Any) -> Any:
    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, onnx.TensorProto):
        return _exact(numpy_helper.to_array(value))
    return value.decode() if isinstance(value, bytes) else value


def _gemm(o: Any, a: Any, b: Any, c: Any = None) -> Any:
    a, b = (np.transpose(m) if o.get(f"trans{n}") else m for n, m in (("A", a), ("B", b)))
    product = (a @ b) * o.get("alpha", 1.0)
    return product if c is None else product + o.get("beta", 1.0) * c


def _axes(o: Any, axes: Any) -> Any:
    given = o.get("axes", axes)
    return None if given is None else tuple(int(k) for k in np.ravel(given))


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(o: Any, u: Any, axes: Any = None) -> Any:
        return function(u, axis=_axes(o, axes), keepdims=bool(o.get("keepdims", 1)))

    return rule


def _slice(o: Any, u: Any, *more: Any) -> Any:
    starts, ends, axes, steps = (more + (None,) * 4)[:4]
    starts, ends = (o.get(n, v) for n, v in (("starts", starts), ("ends", ends)))
    axes = range(len(starts)) if axes is None and "axes" not in o else o.get("axes", axes)
    steps = [1] * len(starts) if steps is None else steps
    index: list[Any] = [slice(None)] * np.ndim(u)
    for axis, *span in zip(axes, starts, ends, steps):
        index[int(axis)] = slice(*map(int, span))
    return u[tuple(index)]


def _reshape(o: Any, u: Any, shape: Any = None) -> Any:
    wanted = o.get("shape", shape)
    return np.reshape(u, [np.shape(u)[k] if n == 0 else int(n) for k, n in enumerate(wanted)])


def _windows(o: Any, u: Any, kernel: Any, fill: float | None) -> Any:
    """Return the entries under the windows, one row for each place of them: (n, c, out, window)."""
    spatial = len(kernel)
    pads = o.get("pads", [0] * 2 * spatial)
    strides, spread = o.get("strides", [1] * spatial), o.get("dilations", [1] * spatial)
    if o.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or o.get("ceil_mode"):
        raise TraceError("windows that are padded automatically are not in the language.")
    if any(pads) and fill is None:
        raise TraceError("a padded maximum is not in the language.")
    width = [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:])]

    def arrange(places: list[Any]) -> Any:
        padded = np.pad(places[0], width)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, spread)]
        view = np.lib.stride_tricks.sliding_window_view(padded, reach, tuple(range(2, 2 + spatial)))
        steps = tuple(slice(None, None, s) for s in strides)
        inside = tuple(slice(None, None, d) for d in spread)
        return view[(slice(None), slice(None), *steps, *inside)]

    found = operators.moved([u], arrange)
    out = found.shape[2 : 2 + spatial]
    return found.reshape(*found.shape[:2], math.prod(out), -1), out


def _conv(o: Any, u: Any, weights: Any, bias: Any = None) -> Any:
    groups, kernel = o.get("group", 1), weights.shape[2:]
    rows, out = _windows(o, u, kernel, 0.0)
    n, channels, places, _ = rows.shape
    size = len(weights) // groups
    parts = []
    for g in range(groups):
        some = rows[:, g * (channels // groups) : (g + 1) * (channels // groups)]
        table = np.reshape(np.transpose(some, (0, 2, 1, 3)), (n * places, -1))
        part = table @ weights[g * size : (g + 1) * size].reshape(size, -1).T
        parts.append(np.transpose(part.reshape(n, places, size), (0, 2, 1)))
    whole = np.concatenate(parts, axis=1) if groups > 1 else parts[0]
    whole = whole if bias is None else whole + bias[:, None]
    return whole.reshape(n, len(weights), *out)


def _pool(function: Callable[..., Any], fill: float | None) -> Callable[..., Any]:
    def rule(o: Any, u: Any) -> Any:
        rows, out = _windows(o, u, o["kernel_shape"], fill)
        return function(rows, axis=3).reshape(*rows.shape[:2], *out)

    return rule


def _normalised(o: Any, u: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
    factor = scale / np.sqrt(variance + o.get("epsilon", 1e-5))
    shape = [1, -1, *[1] * (np.ndim(u) - 2)]
    return u * factor.reshape(shape) + (shift - mean * factor).reshape(shape)


def _split(o: Any, u: Any, sizes: Any = None) -> Any:
    axis, sizes = o.get("axis", 0), o.get("split", sizes)
    cuts = o.get("num_outputs", 2) if sizes is None else np.cumsum(sizes)[:-1].tolist()
    return list(np.split(u, cuts, axis))


_RULES: dict[str, Callable[..., Any]] = {
    "Gemm": _gemm,
    **{name: lambda o, a, b, pair=pair: pair(a, b) for name, pair in {
        "MatMul": operator.matmul, "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul,
        "Div": operator.truediv}.items()},
    "Pow": lambda o, a, b: a ** float(np.asarray(b).reshape(())),
    "Sum": lambda o, *some: sum(some[1:], some[0]),
    "PRelu": lambda o, u, slope: np.maximum(u, 0.0) + slope * np.minimum(u, 0.0),
    "LeakyRelu": lambda o, u: atoms.leaky_relu(u, o.get("alpha", 0.01)),
    "Clip": lambda o, u, low=None, high=None: np.clip(u, o.get("min", low), o.get("max", high)),
    **{name: lambda o, *some, function=function: function(*some) for name, function in {
        "Neg": np.negative, "Abs": np.abs, "Relu": atoms.relu, "Max": np.maximum,
        "Min": np.minimum, "Sigmoid": atoms.sigmoid, "Softplus": atoms.softplus, "Tanh": np.tanh,
        "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Reciprocal": np.reciprocal, "Sin": np.sin,
        "Cos": np.cos}.items()},
    "ReduceSum": _reduced(operators.sum_entries),
    "ReduceMean": _reduced(lambda u, **o: u.mean(**o)),
    "ReduceMax": _reduced(atoms.largest),
    "ReduceMin": _reduced(atoms.smallest),
    "Flatten": lambda o, u: np.reshape(u, (math.prod(np.shape(u)[: o.get("axis", 1)]), -1)),
    "Reshape": _reshape,
    "Transpose": lambda o, u: np.transpose(u, o.get("perm")),
    "Squeeze": lambda o, u, axes=None: np.squeeze(u, _axes(o, axes)),
    "Unsqueeze": lambda o, u, axes=None: np.expand_dims(u, _axes(o, axes)),
    "Concat": lambda o, *some: np.concatenate(some, o["axis"]),
    "Slice": _slice,
    "Split": _split,
    "Gather": lambda o, u, index: np.take(u, index, o.get("axis", 0)),
    "Constant": lambda o: next(iter(o.values())),
    "Identity": lambda o, u: u,
    "Cast": lambda o, u: u,
    "Dropout": lambda o, u, *more: u,
    "Shape": lambda o, u: np.array(np.shape(u)),
    "Pad": lambda o, u, pads=None, *more: np.pad(
        u, list(zip(*np.split(np.asarray(o.get("pads", pads)), 2)))),
    "Conv": _conv,
    "MaxPool": _pool(atoms.largest, None),
    "AveragePool": _pool(lambda u, axis: u.mean(axis=axis), 0.0),
    "GlobalAveragePool": lambda o, u: u.mean(tuple(range(2, np.ndim(u))), keepdims=True),
    "BatchNormalization": _normalised,
}  # fmt: skip
