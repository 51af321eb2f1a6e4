"""`trace`: a PyTorch function as an expression, read from the operations that it performs."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module

from goldstein.calculus import Expression, Variable, atoms, operators
from goldstein.calculus.conditions import Condition, where
from goldstein.calculus.tracing import Sharing, TraceError, compare
from goldstein.errors import GoldsteinError, InputTypeError
from goldstein.torch.oracle import flatten, listed, unflatten

_MOVERS = frozenset({
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "select", "slice",
    "squeeze", "unsqueeze", "cat", "stack", "index", "flip", "roll", "repeat", "diagonal", "unbind",
    "split", "index_select", "gather", "constant_pad_nd", "tril", "triu", "movedim", "flatten",
})  # fmt: skip

_ELSE = "Use goldstein.torch.oracle(fn, params) instead."


def trace(fn: Callable[..., Any], params: Any) -> Expression:
    """Return the expression that a PyTorch function computes, of the numbers of `params` in order.

    Numbers are those of the tensors, exactly; operations are meant in real numbers, also where the
    function computes in float32. `softplus` has no threshold.

    Parameters
    ----------
    fn : callable
        Of as many tensors as there are `params` (of one dict, if `params` is one); or, where
        `params` is a module, without arguments. It returns one number.
    params : tensor, module, dict or list of tensors

    Examples
    --------
    >>> import goldstein as gs, goldstein.torch, torch
    >>> F = goldstein.torch.trace(lambda w: (w - 1).abs().sum() + w.exp().max(), torch.zeros(2))
    >>> gs.minimize(F, [0.0, 0.0], eps=1e-6, delta=1e-6, stationarity="near", rng=0).success
    True
    """
    call, tensors = _called(fn, params)
    leaves = [t.detach().double().cpu() for t in tensors]
    flat = flatten(leaves)
    try:
        graph = make_fx(call, tracing_mode="real")(*leaves).graph
    except RuntimeError as failure:
        if "tracing tensor" not in str(failure):
            raise
        raise TraceError(
            f"fn decides by values: `if`, `float` or `item` of a tensor. {_ELSE}"
        ) from failure
    variable = Variable(flat.size)
    ends = np.cumsum([0, *(t.numel() for t in leaves)])
    shared, known = Sharing(), dict[Any, Any]()
    inputs = iter(zip(ends[:-1], ends[1:], leaves))
    for node in graph.nodes:
        if node.op == "placeholder":
            start, end, leaf = next(inputs)
            known[node] = operators.gather(variable, np.arange(start, end).reshape(leaf.shape))
        elif node.op == "get_attr":
            known[node] = _numbers(getattr(graph.owning_module, node.target))
        elif node.op == "call_function":
            found = _step(node, lambda a: torch.fx.node.map_arg(a, known.__getitem__))
            known[node] = shared(found) if isinstance(found, Expression) else found
        elif node.op == "output":
            (answer,) = node.all_input_nodes
            found = known[answer]
    if not isinstance(found, Expression) or found.size != 1:
        raise TraceError("fn must return one number that depends on params.")
    with torch.no_grad():
        compare(found.reshape(()), lambda x: float(call(*unflatten(x, leaves))), flat)
    return found.reshape(())


def _called(fn: Any, params: Any) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """Return a function of tensors, and these."""
    tensors, form = listed(params)
    if isinstance(params, torch.nn.Module):

        def call(*leaves: torch.Tensor) -> Any:
            with _reparametrize_module(params, form(list(leaves))):
                return fn()

        return call, tensors
    if isinstance(params, Mapping):
        return (lambda *leaves: fn(form(list(leaves)))), tensors
    if not all(isinstance(t, torch.Tensor) for t in tensors):
        raise InputTypeError("params must be a tensor, a module, a dict or a list of tensors.")
    return fn, tensors


def _numbers(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    array = value.detach().cpu().numpy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _step(node: Any, read: Callable[[Any], Any]) -> Any:
    """Return the value of one operation."""
    args, options = read(node.args), read(node.kwargs)
    if node.target.__name__ == "getitem":
        return args[0][args[1]]
    name = node.target.__name__.partition(".")[0]
    inside: list[Any] = []
    torch.fx.node.map_aggregate((args, options), inside.append)
    if not any(isinstance(a, Expression | Condition) for a in inside):
        plain, named = _tensors((args, options))
        found = node.target(*plain, **named)
        return tuple(map(_numbers, found)) if isinstance(found, tuple | list) else _numbers(found)
    try:
        chosen = name == "index" and any(isinstance(a, Condition) for a in args[1])
        if name in _MOVERS and not chosen:
            return _moved(node.target, args, options)
        rule = _RULES.get(name)
        if rule is None:
            raise TraceError(
                f"the operation {name} of PyTorch has no meaning here: it jumps, chooses by value "
                f"or is not in the language. {_ELSE}"
            )
        return rule(*args, **options)
    except GoldsteinError as failure:
        if isinstance(failure, TraceError):
            raise
        raise TraceError(f"{name} in the graph of fn: {failure}") from failure


def _tensors(args: Any) -> Any:
    """Return arguments with tensors in place of arrays."""
    return torch.fx.node.map_aggregate(
        args, lambda a: torch.as_tensor(a) if isinstance(a, np.ndarray) else a
    )


def _moved(target: Any, args: Any, options: Any) -> Any:
    listed = isinstance(args[0], list | tuple)
    parts = list(args[0]) if listed else [args[0]]

    def arrange(places: list[Any]) -> Any:
        tensors = [torch.as_tensor(np.array(p)) for p in places]
        found = target(tensors if listed else tensors[0], *_tensors(args[1:]), **options)
        many = isinstance(found, tuple | list)
        return [f.numpy() for f in found] if many else found.numpy()

    return operators.moved(parts, arrange)


def _dims(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list | tuple) and dim else None if dim in ([], ()) else dim


def _extreme(function: Any) -> Callable[..., Any]:
    def rule(u: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Expression | np.ndarray):  # of two tensors
            return (np.maximum if function is atoms.largest else np.minimum)(u, dim)
        found = function(u, axis=_dims(dim), keepdims=keepdim)
        return (found, None) if isinstance(dim, int) else found

    return rule


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    def rule(u: Any, v: Any, reduction: int = 1, *more: Any) -> Any:
        each = function(u - v, *more)
        return [each, each.mean(), each.sum()][reduction]

    return rule


def _order(u: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    found = atoms.sort(u, dim)
    return (np.flip(found, dim) if descending else found), None


def _topk(u: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    found, _ = _order(u, dim, descending=largest)
    return np.take(found, np.arange(k), dim), None


def _norm(u: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    flat = u.reshape(u.size) if dim is None else u
    axis = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else _dims(dim)
    return atoms.norm(flat, None if ord == 2 else float(ord), axis, keepdim)


def _log_softmax(u: Any, dim: int, *more: Any) -> Any:
    return u - atoms.log_sum_exp(u, dim, True)


def _nll(u: Any, target: Any, weight: Any = None, reduction: int = 1, *more: Any) -> Any:
    if weight is not None or u.ndim != 2 or (target < 0).any():
        raise TraceError("losses of labels with weights or labels to ignore are not read.")
    each = -operators.gather(u, np.arange(len(target)) * u.shape[1] + target)
    return [each, each.mean(), each.sum()][reduction], None


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, alpha=1: a + (b if alpha == 1 else b * alpha),
    "sub": lambda a, b, alpha=1: a - (b if alpha == 1 else b * alpha),
    "rsub": lambda a, b, alpha=1: b - (a if alpha == 1 else a * alpha),
    "mul": operator.mul, "div": operator.truediv, "pow": operator.pow, "neg": operator.neg,
    "square": np.square, "reciprocal": lambda u: 1.0 / u, "rsqrt": lambda u: 1.0 / np.sqrt(u),
    "sigmoid": atoms.sigmoid, "relu": atoms.relu, "leaky_relu": atoms.leaky_relu,
    "hardtanh": lambda u, low=-1.0, high=1.0: np.clip(u, low, high),
    "silu": lambda u: u * atoms.sigmoid(u),
    "elu": lambda u, alpha=1.0, *more: (
        np.maximum(u, 0.0) + (np.exp(np.minimum(u, 0.0)) - 1.0) * alpha),
    "softplus": lambda u, beta=1.0, threshold=20.0: atoms.softplus(u * beta) / beta,
    "atan": np.arctan, "asinh": np.arcsinh,
    **{name: getattr(np, name) for name in (
        "abs", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan",
        "sinh", "cosh", "tanh")},
    "maximum": np.maximum, "minimum": np.minimum, "clamp": lambda u, min=None, max=None: np.clip(
        u, min, max),
    "clamp_min": np.maximum, "clamp_max": np.minimum,
    "sum": lambda u, dim=None, keepdim=False, **_: operators.sum_entries(u, _dims(dim), keepdim),
    "mean": lambda u, dim=None, keepdim=False, **_: u.mean(_dims(dim), keepdim),
    **dict.fromkeys(("amax", "max"), _extreme(atoms.largest)),
    **dict.fromkeys(("amin", "min"), _extreme(atoms.smallest)),
    "prod": lambda u, dim=None, **_: operators.product(u, dim),
    "cumsum": lambda u, dim, **_: operators.cumulated(u, dim),
    "var": lambda u, dim=None, correction=1, keepdim=False: atoms.var(
        u, _dims(dim), int(correction), keepdim),
    "std": lambda u, dim=None, correction=1, keepdim=False: atoms.std(
        u, _dims(dim), int(correction), keepdim),
    **dict.fromkeys(("mv", "mm", "bmm", "dot", "matmul"), operator.matmul),
    "addmm": lambda c, a, b: c + a @ b,
    "linear": lambda u, w, b=None: u @ np.transpose(w) + (0.0 if b is None else b),
    "sort": _order, "topk": _topk,
    "median": lambda u: atoms.sort(u.reshape(u.size))[(u.size - 1) // 2],  # the lower one of two
    "logsumexp": lambda u, dim, keepdim=False: atoms.log_sum_exp(u, _dims(dim), keepdim),
    "_log_softmax": _log_softmax,
    "_softmax": lambda u, dim, *more: np.exp(_log_softmax(u, dim)),
    "nll_loss_forward": _nll, "linalg_vector_norm": _norm, "norm": _norm,
    "l1_loss": _loss(np.abs), "mse_loss": _loss(np.square), "huber_loss": _loss(atoms.huber),
    "smooth_l1_loss": _loss(lambda r, beta=1.0: atoms.huber(r, beta) / beta),
    **{name: lambda a, b, sign=sign: Condition.compare(sign, a, b)
       for name, sign in (("gt", ">"), ("ge", ">"), ("lt", "<"), ("le", "<"))},
    "where": where, "logical_and": operator.and_, "logical_or": operator.or_,
    "logical_not": operator.invert,
    **dict.fromkeys(("clone", "detach", "alias", "_to_copy", "lift_fresh_copy", "contiguous"),
                    lambda u, **_: u),
}  # fmt: skip
