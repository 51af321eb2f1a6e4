"""Any PyTorch scalar as an oracle over one float64 vector."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import NonlinearConstraint

from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.oracles import Oracle
from goldstein.oracles.base import name_of
from goldstein.oracles.data_mean import require_float64
from goldstein.torch import vectors


class TensorOracle(Oracle):
    """Values and gradients of `fn`, by automatic differentiation in float64.

    The tensors are put at the point that is asked for and put back afterwards, storage and all; no
    graph survives a call.

    Attributes
    ----------
    start : ndarray
        The tensors' values when the oracle was made.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        params: list[torch.Tensor],
        spread: bool,
        form: Callable[[list[torch.Tensor]], Any] = list,
    ) -> None:
        self._fn = fn
        self._params = params
        self._form = form
        self._spread = spread
        self._watched: set[str] = set()
        self.start = vectors.flatten(params)
        self.dim = self.start.size

    @property
    def name(self) -> str:
        return name_of(self._fn)

    def how_called(self) -> str:
        """What to do about an exception in the function."""
        return (
            "The error is in that function; it is called with tensors in float64: what it holds "
            "must be float64 too (.double()), and all of it torch, not NumPy."
        )

    def value(self, x: Vector) -> float:
        with self._at(x, "value") as (_, loss):
            return float(loss)

    def gradient(self, y: Vector) -> Vector:
        with self._at(y, "gradient") as (tensors, loss):
            return vectors.flatten(vectors.gradients(loss, tensors))

    def flat(self, point: Any) -> Any:
        """Return a point in the form in which `params` were given as a vector; others as they are.

        Examples
        --------
        >>> import goldstein.torch, torch
        >>> goldstein.torch.oracle(lambda w: w.sum(), torch.zeros(2, 2)).flat(torch.eye(2))
        array([1., 0., 0., 1.])
        """
        places = self._form(list(range(len(self._params))))  # type: ignore[arg-type]
        if isinstance(places, dict):
            same = isinstance(point, Mapping) and set(point) == set(places)
            parts = [point[name] for name in places] if same else []
        else:
            parts = [point] if isinstance(places, int) else list(point)
        if any(not hasattr(part, "shape") for part in parts):
            return point
        fits = [tuple(part.shape) for part in parts] == [tuple(p.shape) for p in self._params]
        return vectors.flatten([torch.as_tensor(part) for part in parts]) if fits else point

    def unflatten(self, x: ArrayLike) -> Any:
        """Return a point in the form in which `params` were given, in float64.

        A tensor, a list or a dict of tensors, or for a module a dict by name, as
        ``module.load_state_dict(f.unflatten(x), strict=False)`` takes it.

        Examples
        --------
        >>> import goldstein, goldstein.torch, torch
        >>> f = goldstein.torch.oracle(lambda w: (w - 1).abs().sum(), torch.zeros(2, 3))
        >>> result = goldstein.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=0)
        >>> f.unflatten(result.x).shape
        torch.Size([2, 3])
        """
        return self._form(vectors.unflatten(np.asarray(x, dtype=np.float64), self._params))

    @contextmanager
    def _at(
        self, x: Vector, question: str, entries: int | None = 1
    ) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
        """Yield the tensors of the point and the loss there; the first time all steps are watched.

        The values and the gradients have a first time each.
        """
        sloped = question == "gradient"
        leaves = [leaf.requires_grad_(sloped) for leaf in vectors.unflatten(x, self._params)]
        with torch.set_grad_enabled(sloped), ExitStack() as stack:
            tensors = leaves
            if not self._spread:
                stack.enter_context(_placed(self._params, leaves))
                tensors = self._params
            if question not in self._watched:
                stack.enter_context(vectors.PrecisionWatch(tensors, self.name))
            answer = self._fn(*leaves) if self._spread else self._fn()
            yield tensors, _checked(answer, self.name, entries)
        self._watched.add(question)


def oracle(
    fn: Callable[..., Any],
    params: torch.Tensor | torch.nn.Module | Mapping[str, torch.Tensor] | Iterable[torch.Tensor],
) -> TensorOracle:
    """Make an oracle of a PyTorch function, for `goldstein.minimize` and `goldstein.certify`.

    Parameters
    ----------
    fn : callable
        Either a function of as many tensors as there are `params` (of one dict, if `params` is a
        dict), or a function without arguments that reads `params` itself. It returns a scalar.
    params : tensor, module, dict or iterable of tensors
        What to differentiate by, in order.

    Returns
    -------
    TensorOracle
        An oracle over one vector; `start` is the current point, and `unflatten(x)` the way back to
        tensors.

    Examples
    --------
    >>> import goldstein, goldstein.torch, torch
    >>> f = goldstein.torch.oracle(lambda x: x.abs().sum(), torch.tensor([3.0, -1.0]))
    >>> goldstein.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=0).success
    True
    """
    if not callable(fn):
        raise InputTypeError(f"fn is {type(fn).__name__}, expected a callable.")
    tensors, form = vectors.listed(params)
    if isinstance(params, Mapping) and _takes_arguments(fn):
        fn = _of_dict(fn, form)
    vectors.require_real(tensors, "params")
    return TensorOracle(fn, tensors, _takes_arguments(fn), form)


def _of_dict(
    fn: Callable[..., Any], form: Callable[[list[torch.Tensor]], Any]
) -> Callable[..., Any]:
    """Return a function of tensors from a function of one dict of them."""

    @wraps(fn, updated=())
    def spread(*tensors: torch.Tensor) -> Any:
        return fn(form(list(tensors)))

    del spread.__wrapped__  # its signature is that of `spread`
    return spread


def _takes_arguments(fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(
        p.kind is p.VAR_POSITIONAL
        or (p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty)
        for p in parameters
    )


@contextmanager
def _placed(params: list[torch.Tensor], values: list[torch.Tensor]) -> Iterator[None]:
    """Give the tensors other values, in float64; put their own storage back afterwards."""
    kept = [(p.data, p.grad, p.requires_grad) for p in params]
    try:
        for p, value in zip(params, values, strict=True):
            p.grad = None
            p.data = value.detach()
            p.requires_grad_(True)
        yield
    finally:
        for p, (data, grad, wanted) in zip(params, kept, strict=True):
            p.data = data
            p.requires_grad_(wanted)
            p.grad = grad


def constraint(
    fn: Callable[..., Any],
    params: torch.Tensor | torch.nn.Module | Mapping[str, torch.Tensor] | Iterable[torch.Tensor],
    lower: Any = 0.0,
    upper: Any = 0.0,
) -> NonlinearConstraint:
    """Make a constraint `lower <= fn(params) <= upper` of a PyTorch function, entry by entry.

    Parameters
    ----------
    fn, params
        As for `oracle`; `fn` returns a tensor of any shape.
    lower, upper : float or tensor
        One number, or one for each entry; without both it is an equality, `fn(params) = 0`.

    Returns
    -------
    scipy.optimize.NonlinearConstraint
        For `goldstein.minimize(..., constraints=...)`, with its Jacobian.

    Examples
    --------
    >>> import goldstein, goldstein.torch, torch
    >>> V = torch.eye(2, dtype=torch.float64)
    >>> f = goldstein.torch.oracle(lambda V: V.abs().sum(), V)
    >>> unit = goldstein.torch.constraint(lambda V: (V * V).sum(0) - 1, V)
    >>> goldstein.minimize(f, V, constraints=unit, eps=1e-3, delta=1e-3, rng=0).success
    True
    """
    made = oracle(fn, params)

    def value(x: Vector) -> Vector:
        with made._at(x, "value", None) as (_, answer):
            return vectors.flatten([answer])

    def jacobian(x: Vector) -> Any:
        with made._at(x, "gradient", None) as (tensors, answer):
            rows = [vectors.gradients(entry, tensors, True) for entry in answer.reshape(-1)]
        return np.array([vectors.flatten(row) for row in rows])

    sides = [np.ravel(np.asarray(side, dtype=np.float64)) for side in (lower, upper)]
    ends = [side if side.size > 1 else float(side[0]) for side in sides]
    return NonlinearConstraint(value, *ends, jac=jacobian)


def _checked(loss: Any, what: str, entries: int | None) -> torch.Tensor:
    if not isinstance(loss, torch.Tensor) or (entries is not None and loss.numel() != entries):
        shown = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise InputTypeError(
            f"fn returned {shown}, expected a tensor with one element. Constraints are made with "
            "goldstein.torch.constraint and go to minimize(constraints=...)."
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise InputTypeError(
            "fn's result does not depend on params through differentiable operations; check for "
            "detach(), .item() or no_grad inside fn."
        )
    require_float64(loss.dtype, what)
    return loss.reshape(()) if entries == 1 else loss
