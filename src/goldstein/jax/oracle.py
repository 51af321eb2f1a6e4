"""Any JAX scalar as an oracle over one float64 vector; what is computed in less is refused."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike

from goldstein.api.certify import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle
from goldstein.oracles.base import name_of
from goldstein.oracles.data_mean import DataMean, Progress, Reduction, Trees, require_float64


class Compiled:
    """Evaluates in float64 whatever the global setting of JAX is.

    A function that computes in less anything that depends on its first argument is refused when it
    is first asked.
    """

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        def scalar(x: Any, *rest: Any) -> Any:
            out = fn(x, *rest)
            if getattr(out, "size", 1) != 1:
                raise InputTypeError(
                    f"{name} returned shape {out.shape}, expected one number; reduce it with a sum "
                    "or a mean."
                )
            return out.reshape(()) if hasattr(out, "reshape") else out

        self._name = name
        self._value = jax.jit(scalar)
        self._gradient = jax.jit(jax.grad(scalar))
        self._checked = False

    def value(self, x: Vector, *rest: Any) -> float:
        with jax.enable_x64(True):
            self._check_once(x, *rest)
            return float(self._value(x, *rest))

    def gradient(self, y: Vector, *rest: Any) -> Vector:
        with jax.enable_x64(True):
            self._check_once(y, *rest)
            return np.array(self._gradient(y, *rest), dtype=np.float64)

    def _check_once(self, *arguments: Any) -> None:
        if not self._checked:
            require_double(self._value.trace(*arguments).jaxpr, self._name)
            require_double(self._gradient.trace(*arguments).jaxpr, self._name)
            self._checked = True


def raveled(params: Any) -> tuple[Vector, Callable[[Any], Any]]:
    """Return the numbers of a pytree as a float64 vector, and the way back."""
    with jax.enable_x64(True):
        doubled = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), params)
        flat, rebuild = ravel_pytree(doubled)
        start: Vector = np.array(flat)
    if start.size == 0:
        raise InputError("params has no numbers in it; nothing to differentiate by.")
    return start, rebuild


class JaxOracle(Oracle):
    """Values and gradients of `fn`, compiled once and computed in float64.

    Attributes
    ----------
    start : ndarray or None
        The flattened `params`, where they were given; the keys of dicts are sorted, as JAX has it.
    """

    def __init__(self, fn: Callable[..., Any], params: Any = None) -> None:
        if not callable(fn):
            raise InputTypeError(f"fn is {type(fn).__name__}, expected a callable.")
        self._name = name_of(fn)
        self.start: Vector | None = None
        self._rebuild: Callable[[Any], Any] | None = None
        if params is not None:
            self.start, self._rebuild = raveled(params)
            self.dim = self.start.size
        self._compiled = Compiled(lambda x: fn(self._tree(x)), self.name)

    def how_called(self) -> str:
        """What to do about an exception in the function."""
        return (
            "The error is in that function; it is called with arrays of JAX, traced ones for the "
            "gradient: use jax.numpy in it, not NumPy, and jnp.where or lax.cond in place of if."
        )

    def value(self, x: Vector) -> float:
        return self._compiled.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self._compiled.gradient(y)

    def flat(self, point: Any) -> Any:
        """Return a pytree like `params` as a vector; other points as they are."""
        if self._rebuild is None or self.start is None:
            return point
        like = jax.tree.map(np.shape, self._rebuild(self.start))
        return raveled(point)[0] if jax.tree.map(np.shape, point) == like else point

    def unflatten(self, x: ArrayLike) -> Any:
        """Return a point as `fn` takes it: a pytree like `params`, in float64.

        Examples
        --------
        >>> import goldstein, goldstein.jax, jax.numpy as jnp
        >>> params = {"a": jnp.ones((2, 1)), "b": jnp.ones(())}
        >>> f = goldstein.jax.oracle(lambda p: jnp.abs(p["a"]).sum() + abs(p["b"] - 2), params)
        >>> res = goldstein.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=0)
        >>> f.unflatten(res.x)["a"].shape
        (2, 1)
        """
        with jax.enable_x64(True):
            return self._tree(np.asarray(x, dtype=np.float64))

    def _tree(self, x: Any) -> Any:
        return x if self._rebuild is None else self._rebuild(x)


def oracle(fn: Callable[..., Any], params: Any = None) -> JaxOracle:
    """Make an oracle of a JAX function, for `goldstein.minimize` and `goldstein.certify`.

    Evaluation is in float64 whatever the global setting of JAX is. A function that computes in less
    anything that depends on its argument is refused, also when it casts the answer up again; arrays
    that `fn` closes over may have any precision, they are constants.

    Parameters
    ----------
    fn : callable
        A traceable function that returns one number, of one vector, or of a pytree like `params`.
    params : pytree, optional
        Structure and current values; the oracle's `start` is its flattened float64 copy, and
        `unflatten(x)` the way back.

    Examples
    --------
    >>> import goldstein, goldstein.jax, jax.numpy as jnp
    >>> f = goldstein.jax.oracle(lambda x: jnp.abs(x).sum())
    >>> goldstein.minimize(f, [3.0, -1.0], eps=1e-3, delta=1e-3, rng=0).success
    True
    """
    return JaxOracle(fn, params)


def require_double(traced: Any, what: str) -> None:
    """Refuse a trace in which a coarser number depends on the first argument, or is the answer.

    Yes and no, and whole numbers, end the dependence: `(x > 0).astype(float32)` is exact.
    """
    for answer in traced.out_avals:
        require_float64(answer.dtype, what)
    _follow(traced, [k == 0 for k in range(len(traced.in_avals))], what)


def _follow(closed: Any, depends: Sequence[bool], what: str) -> list[bool]:
    """Return which results depend on the arguments marked in `depends`."""
    jaxpr = getattr(closed, "jaxpr", closed)
    marked = {var for var, mark in zip(jaxpr.invars, depends, strict=True) if mark}

    def is_marked(atom: Any) -> bool:
        return isinstance(atom, core.Var) and atom in marked

    for equation in jaxpr.eqns:
        given = [is_marked(atom) for atom in equation.invars]
        if not any(given):
            continue
        for var, reached in zip(equation.outvars, _through(equation, given, what), strict=True):
            if reached and jnp.issubdtype(var.aval.dtype, jnp.inexact):
                require_float64(var.aval.dtype, what)
                marked.add(var)
    return [is_marked(atom) for atom in jaxpr.outvars]


def _through(equation: Any, given: list[bool], what: str) -> list[bool]:
    """Return which outputs of an equation depend on its marked inputs, inner programs included."""
    outputs = len(equation.outvars)
    params = equation.params
    match equation.primitive.name:
        case "scan":
            first, count = params["num_consts"], params["num_carry"]
            return _loop(params["jaxpr"], given, first, count, what)
        case "while":
            consts = params["cond_nconsts"]
            body = given[consts:]
            first = params["body_nconsts"]
            reached = _loop(params["body_jaxpr"], body, first, outputs, what)
            _follow(params["cond_jaxpr"], given[:consts] + reached, what)
            return reached
    reached = [False] * outputs
    inner = list(core.jaxprs_in_params(params))
    for program in inner:
        # The last arguments are the program's: a branch is not given the number of the branch.
        count = len(program.invars)
        marks = given[-count:] if count <= len(given) else [True] * count
        results = _follow(program, marks, what) if count else [False] * len(program.outvars)
        if len(results) != outputs:
            return [True] * outputs
        reached = [a or b for a, b in zip(reached, results, strict=True)]
    return reached if inner else [True] * outputs


def _loop(program: Any, given: list[bool], first: int, count: int, what: str) -> list[bool]:
    """Return what depends after any number of turns; arguments first, first + 1, ... come back."""
    marks = list(given)
    while True:
        results = _follow(program, marks, what)
        carried = [a or b for a, b in zip(marks[first : first + count], results)]
        if carried == marks[first : first + count]:
            return carried + results[count:]
        marks[first : first + count] = carried


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = jax.tree.flatten(batch)
    return leaves, partial(jax.tree.unflatten, structure)


#: `loss(params, batch)`.
Loss = Callable[[Any, Any], Any]

TREES = Trees(_flatten, np.concatenate, np.asarray)


class DataOracle(DataMean):
    """Mean of `loss(params, batch)` over all samples, computed in float64.

    Parameters
    ----------
    loss : callable
        `loss(params, batch)`, traceable: a mean over the samples of the batch.
    params : pytree
    batches : iterable of pytrees
        Arrays with one row per sample. It must start afresh each time it is iterated, and give the
        same samples, in any order.
    reduction : {"mean", "sum"}
        What `loss` returns for a batch. The sum over all data is divided by the number of samples.

    Attributes
    ----------
    start : ndarray
        The parameters, flattened.
    samples : int
        Samples per pass, known after the first call.
    converted_from : str
        The dtype of the parameters when it was not float64.
    """

    def __init__(
        self, loss: Loss, params: Any, batches: Iterable[Any], reduction: Reduction = "mean"
    ) -> None:
        if not callable(loss):
            raise InputTypeError(f"loss is {type(loss).__name__}, expected loss(params, batch).")
        start, self._rebuild = raveled(params)
        given = {str(np.asarray(leaf).dtype) for leaf in jax.tree.leaves(params)} - {"float64"}
        self.converted_from = ", ".join(sorted(given))
        name = name_of(loss)
        self._name = f"{name} over data"
        self._compiled = Compiled(lambda x, batch: loss(self._rebuild(x), batch), name)
        self._point = start
        super().__init__(batches, TREES, start, reduction)

    def unflatten(self, x: Vector) -> Any:
        """Return a point as a pytree like `params`, in float64."""
        with jax.enable_x64(True):
            return self._rebuild(np.asarray(x, dtype=np.float64))

    def move(self, x: Vector) -> None:
        self._point = x

    def prepared(self, batch: Any) -> Any:
        return jax.tree.map(_as_double, batch)

    def loss(self, batch: Any) -> float:
        return self._compiled.value(self._point, batch)

    def slope(self, batch: Any) -> Vector:
        return self._compiled.gradient(self._point, batch)


def _as_double(leaf: Any) -> Any:
    array = np.asarray(leaf)
    # By name, since bfloat16 is no floating type of NumPy.
    return array.astype(np.float64) if jax.numpy.issubdtype(array.dtype, np.floating) else array


def certify(
    loss: Loss,
    params: Any,
    batches: Iterable[Any],
    *,
    delta: float,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    reduction: Reduction = "mean",
    progress: Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary trained parameters are, for the mean loss over all of `batches`.

    Everything is computed in float64, batch by batch. Gradients are taken at random points near the
    parameters only, because automatic differentiation is wrong on kinks. A loss that depends on how
    the samples are batched, that differs when it is asked again, or that is computed in less than
    float64 is refused.

    Parameters
    ----------
    loss : callable
        `loss(params, batch)`, traceable: a mean over the samples of the batch. Dropout must be off.
    params : pytree
    batches : iterable of pytrees
        A list or another re-iterable of arrays with one row per sample. Every pass must give the
        same samples, in any order.
    delta : float
        Radius of the ball around the parameters, in the norm of all of them together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    reduction : {"mean", "sum"}
        What `loss` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: automatic differentiation is trusted at the random points. `meta`
        records samples and dtype. Verify it with
        ``certificate.verify(DataOracle(loss, params, batches))``.

    Examples
    --------
    >>> import goldstein.jax, jax.numpy as jnp
    >>> def loss(params, batch):
    ...     return jnp.abs(batch["x"] @ params["w"] - batch["y"]).mean()
    >>> batches = [{"x": jnp.array([[1.0], [2.0]]), "y": jnp.array([2.0, 4.0])}]
    >>> params = {"w": jnp.array([2.0])}
    >>> goldstein.jax.certify(loss, params, batches, delta=1e-3).eps < 1e-12
    True
    """
    return certify_data(
        DataOracle(loss, params, batches, reduction), delta=delta, eps=eps, seed=seed,
        max_calls=max_calls, progress=progress,
    )  # fmt: skip
