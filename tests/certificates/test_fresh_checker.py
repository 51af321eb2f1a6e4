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
from goldstein.calculus.constants import BlockedRows
from goldstein.calculus.expression import in_order, numbered
from goldstein.certificates import GoldsteinCertificate, NearCertificate
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Affine
from goldstein.construction.near.kinks import Kinks
from goldstein.models.losses import Model

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


def alter_pieces(F: Any) -> None:
    for piece in Kinks(F).examine(np.array([1.0])).pieces.values():
        piece[...] = 0


def forget_ties(F: Any) -> None:
    Kinks(F).examine(np.array([0.0])).ties.clear()


def forget_kinks(F: Any) -> None:
    F.gradient(np.array([0.3]))
    for made in (F.evaluation.nodes, F._numbered[0], F._known[0].nodes, F.program().nodes):
        for node in made:
            vars(node)["jumps"] = [0]
            vars(node)["slopes"] = ((0,), (0,))


def exchange_nodes(F: Any) -> None:
    other = gs.sum(gs.abs(gs.Variable(1)))
    vars(F).update(_numbered=numbered(other), _known=other._known, evaluation=other.evaluation)


def scale_matrices(F: Any) -> None:
    program = F.program()
    limiting_gradients(F, [0.0], AWAY)
    for node in program.nodes:
        if isinstance(node, Affine):
            vars(node)["entries"] = node.entries * Exact.of([0] * node.entries.top.size)
            vars(node)["matrix"] = 0 * node.matrix


def exchange_values(F: Any) -> None:
    y = np.array([0.0])
    F._last = (y.tobytes(), tuple(0 * s for s in F.evaluation.states(y)))


ATTACKS = [
    forget_ties, forget_kinks, exchange_nodes, scale_matrices, exchange_values,
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
    F._last = (y.tobytes(), tuple(-np.abs(s) for s in F.evaluation.states(y[0])))
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


def arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    for part in value if isinstance(value, tuple) else ():
        yield from arrays(part)


@cases
@pytest.mark.parametrize("way", ["as made", "copied", "from another process"])
def test_no_array_of_the_definition_can_be_written_to(case: str, way: str) -> None:
    F = CASES[case]()
    if way != "as made":
        F = copy.deepcopy(F) if way == "copied" else pickle.loads(pickle.dumps(F))
    seen = 0
    for node in in_order(F):
        if isinstance(node, Model):
            continue  # a model is evaluated faster than its tree; proofs read the tree
        for array in arrays(tuple(vars(node).values())):
            seen += 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
    assert seen


@cases
def test_nothing_of_the_definition_can_be_exchanged(case: str) -> None:
    for thing in in_order(CASES[case]()):
        for name in [*vars(thing), "program", "anew", "over", "rebuilt"]:
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
        F.program = other.program


@cases
def test_a_function_made_anew_is_the_same_function(case: str) -> None:
    F = CASES[case]()
    twin = F.anew()
    assert not {id(node) for node in in_order(F)} & {id(node) for node in in_order(twin)}
    x = np.random.default_rng(1).standard_normal(F.dim)
    assert twin.value(x) == pytest.approx(F.value(x), rel=1e-12)
    np.testing.assert_allclose(twin.gradient(x), F.gradient(x), rtol=1e-12, atol=1e-12)
    made, again = (G.program().nodes for G in (F, twin))
    assert [(n.name, n.of, n.size) for n in made] == [(n.name, n.of, n.size) for n in again]
    assert [e.name for e in numbered(twin)[1]] == [e.name for e in numbered(F)[1]]


def test_entries_exchanged_in_a_sparse_handle_are_not_those_of_the_function() -> None:
    A = sparse.csr_array(np.array([[1.0], [-1.0]]))
    F = gs.sum(gs.relu(A @ gs.Variable(1)))
    before = limiting_gradients(F, [0.0], AWAY)
    A.data = 7.0 * A.data
    A[0, 0] = 5.0
    assert limiting_gradients(F, [0.0], AWAY) == before
    for node in (*F.evaluation.nodes, *F.program().nodes):
        if isinstance(node, Affine) and sparse.issparse(node.matrix):
            node.matrix.data = 7.0 * node.matrix.data
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
    A = both.data[0]
    forged = false_claim(F, 0.0)
    with pytest.raises(ValueError, match="read-only"):
        A[0][0] = 5.0
    A._cached[0] = -A[0]
    assert not forged.verify(F).ok
    assert NearCertificate.prove(F, [0.0], [0.0], AWAY, [1.0]).eps == 1.0
