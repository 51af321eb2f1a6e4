"""What a search was given, kept or altered does not reach the checker."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.limits import gradient_enclosure, limiting_gradients

import goldstein as gs
from goldstein.calculus.affine import Linear
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.certificates import GoldsteinCertificate, NearCertificate
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.models.base import Model

AWAY = np.array([[1.0]])


def identity() -> Any:
    """relu(w) - relu(-w) = w: the derivative is 1, though both terms have a kink at 0."""
    A = np.array([[1.0], [-1.0]])
    return gs.sum(np.array([1.0, -1.0]) * gs.relu(A @ gs.Variable(1)))


def steep() -> Any:
    """|w| + w: the derivative at 1 is 2."""
    w = gs.Variable(1)
    return gs.sum(gs.abs(w) + w)


def false_claim(F: Any, at: float) -> NearCertificate:
    """Stationarity at a point where every derivative is at least 1."""
    honest = NearCertificate.prove(F, [at], [at], AWAY, [1.0])
    return dataclasses.replace(honest, eps=0.0)


def refuses(F: Any, at: float, attack: Callable[[Any], None]) -> None:
    """Both with the very object that was attacked, and with what can be proved about it."""
    forged = false_claim(F, at)
    attack(F)
    assert not forged.verify(F).ok
    assert NearCertificate.prove(F, [at], [at], AWAY, [1.0]).eps >= 1.0
    assert gs.clarke_distance(F, [at]).lower >= 0.0
    (y,) = forged.x
    mid, rad = gradient_enclosure(F, np.array([y + 0.5]))
    assert mid[0] - rad[0] >= 0.99


def every_form(F: Any) -> list[Any]:
    """The forms that a search can get hold of."""
    return [F.kink_form(), *(v for k, v in vars(F).items() if k.endswith("_form"))]


def alter_pieces(F: Any) -> None:
    for form in every_form(F):
        found = form.examine(np.array([1.0]))
        for piece in found.pieces.values():
            piece[...] = 0


def forget_ties(F: Any) -> None:
    for form in every_form(F):
        form.examine(np.array([0.0])).ties.clear()


def exchange_rows(F: Any) -> None:
    for form in every_form(F):
        found = form.examine(np.array([0.0]))
        for node in form.root.kink_nodes:
            for entry in range(node.size):
                found._integer_rows[(id(node.args[0]), entry)] = ([0], [-1], 1)
                found.row(node.args[0], entry)[0] *= -1


def forget_kinks(F: Any) -> None:
    F.gradient(np.array([0.3]))
    for node in F.plan:
        vars(node)["kink_nodes"] = ()
        vars(node)["is_affine"] = True
        if hasattr(node, "function"):
            vars(node.function)["jumps"] = (0,)
            vars(node.function)["kinks"] = ()
            vars(node.function)["slopes"] = ((0,), (0,))


def cut_the_plan(F: Any) -> None:
    vars(F)["plan"] = (F.variable, F)


def scale_exact_matrices(F: Any) -> None:
    limiting_gradients(F, [0.0], AWAY)
    for node in F.plan:
        if isinstance(node, Linear):
            vars(node)["_exact_matrix"] = 0 * node._exact_matrix


def exchange_values(F: Any) -> None:
    y = np.array([0.0])
    values = F._values(y)
    F._last = (y.tobytes(), {key: 0 * value for key, value in values.items()})


ATTACKS = [
    forget_ties, exchange_rows, forget_kinks, cut_the_plan, scale_exact_matrices, exchange_values,
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.__name__)
def test_altered_memory_does_not_reach_the_checker(attack: Callable[[Any], None]) -> None:
    refuses(identity(), 0.0, attack)


def test_altered_pieces_of_a_smooth_point_do_not_reach_the_checker() -> None:
    refuses(steep(), 1.0, alter_pieces)


def test_what_the_float_search_kept_does_not_make_a_goldstein_certificate() -> None:
    F = steep()
    y = np.array([[1.0]])
    claim = GoldsteinCertificate.from_gradients(y[0], y, np.zeros((1, 1)))
    F.value(y[0])
    F._last = (y.tobytes(), {key: -abs(value) for key, value in F._values(y[0]).items()})
    assert not claim.verify(F).ok


# --- the definition itself stays what it was -----------------------------------------------------

X = np.random.default_rng(0).standard_normal((6, 3))
CASES: dict[str, Callable[[], Any]] = {
    "identity": identity,
    "sparse": lambda: gs.sum(gs.relu(sparse.csr_array(X) @ gs.Variable(3) / 3.0 + 1.0)),
    "divided": lambda: gs.sum(gs.abs(gs.Variable(3) / np.array([3.0, 5.0, 7.0]))),
    "gathered": lambda: gs.norm2(gs.Variable(3)[[2, 0]]),
    "log_sum": lambda: gs.sum(gs.log_sum(gs.Variable(2), 1.0, 0.5)),
    "pseudo": lambda: gs.sum(gs.pseudo_huber(gs.Variable(2), 0.5)),
    "softplus": lambda: gs.sum(gs.softplus(gs.Variable(2))),
    "max": lambda: gs.max(X @ gs.Variable(3)),
    "softmax": lambda: gs.softmax_cross_entropy(X @ gs.Variable(6).reshape(3, 2), [0, 1] * 3),
    "product": lambda: gs.sum(gs.relu(gs.Variable(4).reshape(2, 2) @ np.ones(2))),
    "margin": lambda: gs.models.margin_svm(X),
    "margin sparse": lambda: gs.models.margin_svm(sparse.csr_array(X)),
    "network": lambda: gs.models.relu_two_layer(X, X[:, 0], 2, ridge=0.1),
    "classes": lambda: gs.models.multiclass_margin(X, [0, 1, 2] * 2, 3),
}
cases = pytest.mark.parametrize("case", CASES)


def things(F: Any) -> Iterator[Any]:
    """Every node of an expression, and the functions that nodes apply."""
    for node in F.plan:
        yield node
        if hasattr(node, "function"):
            yield node.function


def arrays(thing: Any) -> Iterator[np.ndarray]:
    for value in vars(thing).values():
        parts = [value, *(value if isinstance(value, tuple) else [])]
        if sparse.issparse(value):
            parts = [value.data, value.indices, value.indptr]
        yield from (part for part in parts if isinstance(part, np.ndarray))


@cases
@pytest.mark.parametrize("way", ["as made", "copied", "from another process"])
def test_no_array_of_the_definition_can_be_written_to(case: str, way: str) -> None:
    F = CASES[case]()
    if way != "as made":
        F = copy.deepcopy(F) if way == "copied" else pickle.loads(pickle.dumps(F))
    seen = 0
    for node in F.plan:
        if isinstance(node, Model):
            continue  # a model is evaluated faster than its tree; proofs read the tree
        for array in arrays(node):
            if array.dtype == object:
                continue
            seen += 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    assert seen or case in {"log_sum", "pseudo", "softplus"}


@cases
def test_nothing_of_the_definition_can_be_exchanged(case: str) -> None:
    for thing in things(CASES[case]()):
        for name in [*vars(thing), "forward", "anew"]:
            if name in thing.adjustable or not hasattr(thing, name):
                continue
            with pytest.raises(AttributeError):
                setattr(thing, name, getattr(thing, name))
            if name in vars(thing):
                with pytest.raises(AttributeError):
                    delattr(thing, name)


def test_the_questions_of_the_checker_cannot_be_answered_by_someone_else() -> None:
    F, other = identity(), gs.sum(gs.abs(gs.Variable(1)))
    with pytest.raises(AttributeError, match="cannot change"):
        F.kink_form = other.kink_form


@cases
def test_a_function_made_anew_is_the_same_function(case: str) -> None:
    F = CASES[case]()
    twin = F.anew()
    assert not {id(node) for node in F.plan} & {id(node) for node in twin.plan}
    x = np.random.default_rng(1).standard_normal(F.dim)
    assert twin.value(x) == pytest.approx(F.value(x), rel=1e-12)
    np.testing.assert_allclose(twin.gradient(x), F.gradient(x), rtol=1e-12, atol=1e-12)
    assert twin.is_affine == F.is_affine
    assert twin.degree == F.degree
    assert [n.name for n in twin.kink_nodes] == [n.name for n in F.kink_nodes]


def test_entries_exchanged_in_a_sparse_handle_are_not_those_of_the_function() -> None:
    F = gs.sum(gs.relu(sparse.csr_array(np.array([[1.0], [-1.0]])) @ gs.Variable(1)))
    (node,) = (n for n in F.plan if isinstance(n, Linear))
    before = limiting_gradients(F, [0.0], AWAY)
    node.A.data = 7.0 * node.A.data
    assert limiting_gradients(F, [0.0], AWAY) == before


class InOneBlock(BlockedRows):
    """Rows that are kept by someone else."""

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__()
        self._rows, self.shape = rows, rows.shape

    def product(self, v: Any) -> Any:
        return self._rows @ v

    def enclosed_product(self, v: Enclosure) -> Enclosure:
        return self._rows @ v

    def transposed_product(self, a: Any) -> Any:
        return self._rows.T @ a

    def enclosed_transposed_product(self, a: Enclosure) -> Enclosure:
        return self._rows.T @ a

    def fetch(self, index: Any) -> Any:
        return self._rows[index]

    def norms(self) -> Any:
        return np.linalg.norm(self._rows, axis=1)

    def scaled(self, factors: Any) -> InOneBlock:
        return InOneBlock(factors[:, None] * self._rows)


def test_rows_that_a_search_kept_are_fetched_again() -> None:
    # -ramp(w) + ramp(-w) = w on [-1, 1], up to a constant.
    both = gs.linear(InOneBlock(np.array([[1.0], [-1.0]])), gs.Variable(1))
    F = gs.sum(np.array([-1.0, 1.0]) * gs.ramp(both))
    (node,) = (n for n in F.plan if isinstance(n, Linear))
    forged = false_claim(F, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        node.A[0][0] = 5.0
    node.A._kept[0] = -node.A[0]
    assert not forged.verify(F).ok
    assert NearCertificate.prove(F, [0.0], [0.0], AWAY, [1.0]).eps == 1.0
