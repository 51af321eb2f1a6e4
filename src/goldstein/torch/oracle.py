"""Any PyTorch scalar as an oracle over one float64 vector.

Batches of PyTorch, how a model is called with them, and what its losses divide by.

Between lists of tensors and one float64 vector; what is computed in less is refused.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial, wraps
from numbers import Number
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import NonlinearConstraint
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle
from goldstein.oracles.base import name_of
from goldstein.oracles.data_mean import Trees, require_float64


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
        self.start = flatten(params)
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
            return flatten(gradients(loss, tensors))

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
        return flatten([torch.as_tensor(part) for part in parts]) if fits else point

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
        return self._form(unflatten(np.asarray(x, dtype=np.float64), self._params))

    @contextmanager
    def _at(
        self, x: Vector, question: str, entries: int | None = 1
    ) -> Iterator[tuple[list[torch.Tensor], torch.Tensor]]:
        """Yield the tensors of the point and the loss there; the first time all steps are watched.

        The values and the gradients have a first time each.
        """
        sloped = question == "gradient"
        leaves = [leaf.requires_grad_(sloped) for leaf in unflatten(x, self._params)]
        with torch.set_grad_enabled(sloped), ExitStack() as stack:
            tensors = leaves
            if not self._spread:
                stack.enter_context(_placed(self._params, leaves))
                tensors = self._params
            if question not in self._watched:
                stack.enter_context(PrecisionWatch(tensors, self.name))
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
    tensors, form = listed(params)
    if isinstance(params, Mapping) and _takes_arguments(fn):
        fn = _of_dict(fn, form)
    require_real(tensors, "params")
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
            return flatten([answer])

    def jacobian(x: Vector) -> Any:
        with made._at(x, "gradient", None) as (tensors, answer):
            rows = [gradients(entry, tensors, True) for entry in answer.reshape(-1)]
        return np.array([flatten(row) for row in rows])

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


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = tree_flatten(batch)
    return leaves, lambda others: tree_unflatten(others, structure)


TREES = Trees(_flatten, torch.cat, lambda tensor: tensor.cpu().numpy())


def as_double(part: Any, device: torch.device) -> Any:
    """Return containers of tensors on a device, the real ones in float64; the rest as it is."""
    if isinstance(part, torch.Tensor):
        tensor = part.to(device)
        return tensor.double() if tensor.is_floating_point() else tensor
    if isinstance(part, np.ndarray | Number) or _is_table(part):
        return as_double(torch.as_tensor(part), device)
    if isinstance(part, Mapping):
        return {name: as_double(entry, device) for name, entry in part.items()}
    if isinstance(part, tuple | list):
        return tuple(as_double(entry, device) for entry in part)
    return part


def require_batch(batch: Any) -> None:
    """Refuse what is neither inputs and targets nor a dict."""
    if isinstance(batch, Mapping) or (isinstance(batch, tuple | list) and len(batch) > 1):
        return
    raise InputTypeError(
        f"data yielded {type(batch).__name__}, expected batches: pairs (input, target), tuples "
        "(input, ..., target), or dicts. If data is one batch, pass [data]."
    )


class Caller:
    """Calls a model with the inputs of a batch.

    A tensor is passed as it is, a tuple as several arguments, a dict by name; of a batch that is a
    dict those entries that the model takes. `call` is called in place of the model.
    """

    def __init__(self, model: torch.nn.Module, call: Callable[..., Any] | None = None) -> None:
        self._forward, self._model = model.forward, call or model

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self._forward).parameters

    def __call__(self, batch: Any) -> tuple[Any, Any]:
        """Return the model's output, and what the loss compares it with."""
        if isinstance(batch, dict):
            takes = self._parameters
            every = any(p.kind is p.VAR_KEYWORD for p in takes.values())
            return self._model(**{n: batch[n] for n in batch if every or n in takes}), batch
        *inputs, target = batch
        given = inputs[0] if len(inputs) == 1 else inputs
        if isinstance(given, dict):
            return self._model(**given), target
        return self._model(*(given if isinstance(given, tuple | list) else [given])), target


def _is_table(part: Any) -> bool:
    """True for lists of numbers, and lists of such lists."""
    if not (isinstance(part, tuple | list) and part):
        return False
    return all(isinstance(entry, Number) or _is_table(entry) for entry in part)


WEIGHTED = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
WEIGHTED_FUNCTIONS = (functional.cross_entropy, functional.nll_loss)


def divisor(loss_fn: Any, reduction: str) -> Callable[[Any], float] | None:
    """Return what the loss divides by, as a function of the targets; None for a plain mean.

    Cross-entropy with class weights divides by the weights of the targets, and leaves out those
    that are to be ignored: its mean over all data is not the mean of the means over batches.

    Examples
    --------
    >>> import torch
    >>> loss_fn = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    >>> divisor(loss_fn, "mean")(torch.tensor([0, 1, -100]))
    4.0
    """
    settings = _settings(loss_fn)
    own = settings.get("reduction")
    if own is not None and own != reduction and own in ("mean", "sum"):
        raise InputError(
            f"loss_fn has reduction={own!r}, but it is taken for the {reduction} over the batch; "
            f"pass reduction={own!r} here too, or change that of loss_fn."
        )
    if reduction == "sum" or "ignore_index" not in settings:
        return None
    return partial(_counted, settings["weight"], settings["ignore_index"])


def _settings(loss_fn: Any) -> dict[str, Any]:
    """Return the reduction of a loss of PyTorch, and the weights if it has some."""
    if type(loss_fn) in WEIGHTED:
        names = ("weight", "ignore_index", "reduction")
        return {name: getattr(loss_fn, name) for name in names}
    if isinstance(loss_fn, torch.nn.Module):
        return {"reduction": getattr(loss_fn, "reduction", None)}
    given: dict[str, Any] = {}
    function = loss_fn
    if isinstance(loss_fn, partial) and not loss_fn.args:
        function, given = loss_fn.func, loss_fn.keywords
    if function in WEIGHTED_FUNCTIONS:
        return {"weight": None, "ignore_index": -100, "reduction": "mean", **given}
    return {}


def _counted(weight: torch.Tensor | None, ignored: int, target: Any) -> float:
    if not isinstance(target, torch.Tensor):
        return 1.0
    if target.is_floating_point():  # probabilities of the classes, which are dimension 1
        return float(target.numel() / target.shape[1]) if target.ndim > 1 else 1.0
    kept = target[target != ignored]
    return float(kept.numel() if weight is None else weight.to(kept.device)[kept].double().sum())


def flatten(tensors: Sequence[torch.Tensor]) -> Vector:
    """Return a float64 copy of all entries, in order."""
    pieces = [t.detach().to(device="cpu", dtype=torch.float64).reshape(-1) for t in tensors]
    joined: Vector = torch.cat(pieces).numpy().copy()
    return joined


def unflatten(vector: Vector, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return float64 tensors of the shapes and devices of `like`, sharing nothing with `vector`."""
    flat = torch.tensor(vector, dtype=torch.float64)
    pieces = torch.split(flat, [t.numel() for t in like])
    return [piece.view(t.shape).to(t.device) for piece, t in zip(pieces, like, strict=True)]


def gradients(
    loss: torch.Tensor, tensors: Sequence[torch.Tensor], retain: bool = False
) -> list[torch.Tensor]:
    """Return the gradient in each tensor; zeros where the loss does not depend on it."""
    found = torch.autograd.grad(loss, tensors, allow_unused=True, retain_graph=retain)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, tensors, strict=True)]


def listed(params: Any) -> tuple[list[torch.Tensor], Callable[[list[torch.Tensor]], Any]]:
    """Return the tensors to differentiate by, and what puts others into the form of `params`.

    `params` is a tensor, a list or a dict of tensors, or a module: then those that require
    gradients, by their names.
    """
    if isinstance(params, torch.Tensor):
        return [params], itemgetter(0)
    if isinstance(params, torch.nn.Module):
        params = {name: p for name, p in params.named_parameters() if p.requires_grad}
    if isinstance(params, Mapping):
        names = tuple(params)
        return list(params.values()), lambda tensors: dict(zip(names, tensors, strict=True))
    return list(params), list


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Return a fingerprint of all bits."""
    seen = hashlib.sha256()
    for tensor in tensors:
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        seen.update(raw.numpy().tobytes())
    return seen.hexdigest()


def require_real(tensors: Sequence[torch.Tensor], what: str) -> None:
    """Refuse an empty list and parameters that are not real numbers."""
    if not tensors:
        raise InputError(f"{what} has no parameters that require gradients; nothing to certify.")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            raise InputTypeError(f"{what} has a parameter of type {kind}, expected real tensors.")


class PrecisionWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, refuse every coarser number that depends on the given tensors.

    It sees all operations, those of the backward pass and of custom functions too, and slows them
    down: one evaluation is watched, not all of them. Yes and no, and whole numbers, end the
    dependence: `(x > 0).float()` is exact. What a program does to the numbers outside of PyTorch
    (`.item()`, NumPy) and sparse tensors are not seen.

    Attributes
    ----------
    numbers : int
        How many such numbers there were.
    """

    def __init__(self, tensors: Iterable[torch.Tensor], what: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._what = what
        self.numbers = 0
        # By storage, since views are other tensors; a weak reference keeps its address from being
        # given to another storage, and frees the memory.
        self._marked: dict[int, StorageWeakRef] = {}
        for tensor in tensors:
            self._mark(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        if any(self._is_marked(leaf) for leaf in tree_leaves((args, kwargs))):
            for leaf in tree_leaves(answer):
                if isinstance(leaf, torch.Tensor) and _is_inexact(leaf):
                    require_float64(leaf.dtype, self._what)
                    self._mark(leaf)
                    self.numbers += leaf.numel()
        return answer

    def _mark(self, tensor: torch.Tensor) -> None:
        if tensor.layout is torch.strided:
            storage: Any = tensor.untyped_storage()
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._marked[reference.cdata] = reference

    def _is_marked(self, leaf: Any) -> bool:
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return False
        return leaf.untyped_storage()._cdata in self._marked


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
