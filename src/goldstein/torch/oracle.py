"""Any PyTorch scalar as an oracle over one float64 vector.

Batches of PyTorch, how a model is called with them, and what its losses divide by. At the end the
loss of a model over a data set, one batch at a time, and its certificate.

Between lists of tensors and one float64 vector; what is computed in less is refused.
"""

import copy
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property, partial, wraps
from numbers import Number
from operator import itemgetter
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike
from scipy.optimize import NonlinearConstraint
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from goldstein.api.certify import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact import LongSum
from goldstein.oracles import Oracle, data_mean
from goldstein.oracles.base import name_of
from goldstein.torch import replicas


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
        self._fn, self._name = fn, name_of(fn)
        self._params = params
        self._form = form
        self._spread = spread
        self._watched: set[str] = set()
        self.start = flatten(params)
        self.dim = self.start.size

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
    data_mean.require_float64(loss.dtype, what)
    return loss.reshape(()) if entries == 1 else loss


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = tree_flatten(batch)
    return leaves, lambda others: tree_unflatten(others, structure)


TREES = data_mean.Trees(_flatten, torch.cat, lambda tensor: tensor.cpu().numpy())


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
    return torch.cat(pieces).numpy()


def unflatten(vector: Vector, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return float64 tensors of the shapes and devices of `like`, sharing nothing with `vector`."""
    pieces = torch.split(torch.tensor(vector, dtype=torch.float64), [t.numel() for t in like])
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
                number = isinstance(leaf, torch.Tensor)
                if number and (leaf.is_floating_point() or leaf.is_complex()):
                    data_mean.require_float64(leaf.dtype, self._what)
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


class DataOracle(data_mean.DataMean):
    """Mean loss of a private float64 copy of a model, in evaluation mode.

    Parameters
    ----------
    model : Module
        Never changed; a copy is evaluated.
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch. Class weights and ignored targets of
        PyTorch's cross-entropy are taken into account.
    data : iterable of batches
        Pairs (input, target), tuples (input, ..., target), or dicts, of which the model is given
        what it takes and `loss_fn(output, batch)` all. Iterated twice before the first answer, and
        once per call if it is too large to be kept; it must start afresh each time (a DataLoader or
        a list) and give the same samples, in any order.
    distributed : bool
        Every rank brings its own share of the data; sums are taken over all ranks.
    reduction : {"mean", "sum"}
        What `loss_fn` returns for a batch. The sum over all data is divided by the number of
        samples.

    Attributes
    ----------
    start : ndarray
        The weights, flattened.
    samples : int
        Samples per pass over all ranks, known after the first call.
    converted_from : str
        The dtype of the model's parameters when it was not float64.
    """

    evaluated_in = "float64, evaluation mode"

    def __init__(
        self,
        model: torch.nn.Module,
        loss_fn: Callable[[Any, Any], Any],
        data: Iterable[Any],
        distributed: bool = False,
        reduction: data_mean.Reduction = "mean",
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise InputTypeError(f"model is {type(model).__name__}, expected a torch.nn.Module.")
        if not callable(loss_fn):
            raise InputTypeError(f"loss_fn is {type(loss_fn).__name__}, expected a callable.")
        if distributed:
            replicas.require_processes()
            replicas.check_replicas(model)
        own = replicas.unwrap(model)
        replicas.require_whole(own)
        given = {p.dtype for p in own.parameters() if p.requires_grad} - {torch.float64}
        self.converted_from = ", ".join(sorted(map(str, given)))
        self._model = copy.deepcopy(own).double().eval()
        self._call = Caller(self._model)
        self._loss_fn = (
            copy.deepcopy(loss_fn).double() if isinstance(loss_fn, torch.nn.Module) else loss_fn
        )
        self.shared = distributed
        self._params, self._named = listed(self._model)
        require_real(self._params, "model")
        for p in self._model.parameters():
            p.grad = None
        self._name = f"{type(own).__name__} over data"
        self._device = self._params[0].device
        self._watched: set[str] = set()
        #: Numbers that are computed for each number of a batch.
        self._computed = math.inf
        super().__init__(data, TREES, flatten(self._params), reduction)
        self._divisor = divisor(self._loss_fn, reduction)

    @property
    def meta(self) -> dict[str, Any]:
        return {**super().meta, "processes": dist.get_world_size() if self.shared else 1}

    def unflatten(self, x: Vector) -> dict[str, torch.Tensor]:
        """Return a point as float64 tensors by name, for `load_state_dict(..., strict=False)`."""
        return self._named(unflatten(x, self._params))

    def move(self, x: Vector) -> None:
        with torch.no_grad():
            pieces = torch.split(torch.from_numpy(x), [p.numel() for p in self._params])
            for p, piece in zip(self._params, pieces, strict=True):
                p.copy_(piece.view_as(p))

    def prepared(self, batch: Any) -> Any:
        require_batch(batch)
        return as_double(batch, self._device)

    def weight(self, batch: Any) -> float:
        if self._divisor is None or isinstance(batch, dict):
            return super().weight(batch)
        return self._divisor(batch[-1])

    def computed(self, batch: Any) -> float:
        return self._computed * self.trees.numbers(batch)

    def loss(self, batch: Any) -> float:
        with torch.no_grad(), self._watching("value") as watch:
            answer = float(self._tensor(batch))
        if watch is not None:
            self._computed = 1.0 + watch.numbers / max(1, self.trees.numbers(batch))
        return answer

    def slope(self, batch: Any) -> Vector:
        return self.loss_and_slope(batch)[1]

    def loss_and_slope(self, batch: Any) -> tuple[float, Vector]:
        with torch.enable_grad(), self._watching("gradient"):
            loss = self._tensor(batch)
            slope = gradients(loss, self._params)
        return float(loss.detach()), flatten(slope)

    def _watching(self, question: str) -> Any:
        """The first time all steps are watched, for the values and for the gradients."""
        if question in self._watched:
            return nullcontext()
        self._watched.add(question)
        return PrecisionWatch(self._params, "the model or loss_fn")

    def _tensor(self, batch: Any) -> torch.Tensor:
        loss = self._loss_fn(*self._call(batch))
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InputTypeError(
                f"loss_fn must return one number, the {self.reduction} over the batch; got "
                f"{tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__}."
            )
        data_mean.require_float64(loss.dtype, "the model or loss_fn")
        return loss.reshape(())

    def _agree_on(self, x: Vector) -> None:
        if self.shared:
            replicas.require_same_point(x)

    def _total(self, sums: LongSum) -> Vector:
        return replicas.reduce_sum(sums, self._device) if self.shared else sums.total()

    def _inspect(self) -> None:
        if not self.shared:
            super()._inspect()
            return
        failure: Exception | None = None
        try:
            super()._inspect()
        except Exception as found:
            failure = found
        replicas.agree_on_failure(failure)

    def why_not_mean(self, whole: Any, parts: list[Any]) -> str:
        with torch.no_grad():
            together = TREES.arrays(self._call(whole)[0])
            apart = [TREES.arrays(self._call(part)[0]) for part in parts]
        if not together:
            return super().why_not_mean(whole, parts)
        for column in zip(together, *apart, strict=False):
            expected, found = column[0].double(), torch.cat(column[1:]).double()
            size = float(expected.abs().max()) if expected.numel() else 0.0
            if expected.shape == found.shape and not torch.allclose(
                found, expected, rtol=0.0, atol=data_mean.ROUNDING * size
            ):
                return (
                    "The model's output for a sample depends on the other samples of the batch: "
                    "batch normalisation without running statistics does that (build it with "
                    "track_running_stats=True), and everything else that looks at a whole batch."
                )
        return (
            "The model's outputs do not depend on the batch, so it is the loss: class weights, "
            "ignored targets and masks in a mean divide by something else than the number of "
            "samples (those of torch.nn.CrossEntropyLoss and torch.nn.functional.cross_entropy are "
            "understood where loss_fn is that very object)."
        )


def certify(
    model: torch.nn.Module,
    loss_fn: Callable[[Any, Any], Any],
    data: Iterable[Any] | None = None,
    *,
    delta: float | None = None,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    distributed: bool = False,
    reduction: data_mean.Reduction = "mean",
    progress: data_mean.Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary a trained model is, for the mean loss over all of `data`.

    A private copy is evaluated in float64 and in evaluation mode, batch by batch: the model is left
    alone, memory does not grow with the number of samples (data up to 256 MB are kept), and no
    graph is retained. Gradients are taken at random points near the weights only, never at the
    weights themselves, because automatic differentiation is wrong on kinks. A loss that depends on
    how the samples are batched, that differs when it is asked again, or that is computed in less
    than float64 is refused.

    Parameters
    ----------
    model : Module
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch. Class weights and ignored targets of
        `torch.nn.CrossEntropyLoss` and the like count as if all data were one batch.
    data : iterable of batches
        A DataLoader or a list of pairs (input, target), of tuples (input, ..., target), or of
        dicts, of which the model gets what it takes and `loss_fn(output, batch)` all. Every pass
        must give the same samples, in any order.
    delta : float
        Radius of the ball around the weights, in the norm of all weights together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    distributed : bool
        Every rank calls this with its own share of the data (nothing twice) and gets the same
        certificate, that of all the data. Differing replicas raise `DesynchronisedError`.
    reduction : {"mean", "sum"}
        What `loss_fn` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: autograd is trusted at the random points. `meta` records samples,
        dtype and mode. Verify it with ``certificate.verify(DataOracle(model, loss_fn, data))``.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
    >>> _ = torch.nn.init.constant_(model.weight, 2.0)
    >>> data = [(torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [4.0]]))]
    >>> certificate = goldstein.torch.certify(model, torch.nn.L1Loss(), data, delta=1e-3)
    >>> certificate.eps < 1e-12
    True
    """
    if data is None or delta is None:
        raise InputTypeError(
            f"{'data' if data is None else 'delta'} is missing: certify(model, loss_fn, data, "
            "delta=...) takes a loss_fn(output, target) and a DataLoader, or a list of batches. Of "
            "a closure that returns the loss of the model: f = goldstein.torch.oracle(closure, "
            "model), then goldstein.certify(f, f.start, delta=...)."
        )
    return certify_data(
        DataOracle(model, loss_fn, data, distributed, reduction), delta=delta, eps=eps, seed=seed,
        max_calls=max_calls, progress=progress,
    )  # fmt: skip
