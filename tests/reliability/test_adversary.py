"""5,000 instances of the adversary suite: nothing false is verified, nothing stated is refused."""

from __future__ import annotations

import contextlib
import doctest
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.adversary import __main__ as command
from benchmarks.adversary import cells, shortest
from benchmarks.adversary.ask import exact
from benchmarks.adversary.attacks import single_lies
from benchmarks.adversary.random_trees import random_tree, two_sided
from benchmarks.adversary.suite import (
    FALSE_CERTIFIED,
    FALSE_CONDITIONAL,
    FAULTS,
    Seen,
    Tally,
    allowed_misses,
    attacks,
    last_line,
    run,
    shares,
)

import goldstein as gs

INSTANCES = shares(5000, list(attacks().values()))

#: Gradients that are wrong everywhere: the right answer is that no claim is made.
UNCLAIMED = ("skewed-gradients",)


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
def test_attack(name: str) -> None:
    tally = run(INSTANCES[name], 0, [name])[name]
    wrong = "\n".join(str(one) for one in tally.wrong[:5])
    assert not any(tally.faults[word] for word in FAULTS), f"{tally.line}\n{wrong}"
    # The attack did something: the library has said yes or no, or made no claim of a lie.
    made = tally.counts["accepted"] + tally.counts["refused"]
    assert made > 0 or (name in UNCLAIMED and tally.counts["no claim"] > 0)


# --- the suite itself ----------------------------------------------------------------------------


def test_every_instance_can_be_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    first, again = (attacks()["forged-fields"].run(3, range(20)) for _ in range(2))
    assert [str(one) for one in first] == [str(one) for one in again]
    assert [one.counts for one in first] == [one.counts for one in again]
    assert command.main(["--attack", "forged-fields", "--seed", "3", "--index", "7"]) == 0
    said = capsys.readouterr().out
    assert str(first[7]) in said
    assert said.endswith("false certified: 0, false conditional: 0, contradictions: 0\n")


def test_shares_add_up() -> None:
    known = list(attacks().values())
    for n in (5000, 20_000, 10**6):
        given = shares(n, known)
        assert n - sum(given.values()) <= sum(attack.least for attack in known)
        assert all(count >= 1 for count in given.values())


class Yes:
    """A check that believes everything."""

    ok, label = True, "certified"


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [
        (gs.NearCertificate, "near-forgeries", FALSE_CERTIFIED),
        (gs.GoldsteinCertificate, "tied-boxes", FALSE_CERTIFIED),
        (gs.PlusCertificate, "prox-terms", FALSE_CERTIFIED),
        (gs.KKTCertificate, "multipliers", FALSE_CERTIFIED),
        (gs.GoldsteinCertificate, "shy-boxes", FALSE_CERTIFIED),
        (gs.NearCertificate, "kernel-files", FALSE_CERTIFIED),
        (gs.MinimumCertificate, "kernel-files", FALSE_CERTIFIED),
        (gs.MinimumCertificate, "declared-curvature", FALSE_CERTIFIED),
        (gs.Refutation, "odd-inputs", FALSE_CERTIFIED),
    ],
)
def test_a_library_that_believes_everything_is_found_out(
    kind: Any, name: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "verify", lambda self, *args, seed=0, **limits: Yes())
    assert run(60, 1, [name])[name].faults[word] > 5


@pytest.mark.parametrize("kind", single_lies.KINDS)
def test_the_truth_in_which_lies_are_hidden_passes(kind: str) -> None:
    """Otherwise a lie would be refused for something else than itself."""
    for seed in range(5):
        draft = single_lies.Draft.honest(np.random.default_rng(seed))
        claim, function, limits = single_lies.KINDS[kind](draft)
        assert claim.verify(*function, **limits).ok


def test_claims_that_fail_their_own_check_are_counted() -> None:
    seen = Seen("name", 0, 0)
    seen.claim(False, "conditional", None, "stated", own=True)
    seen.claim(True, "conditional", False, "believed", belief="noise hides the error")
    seen.claim(True, "conditional", False, "false")
    tally = Tally("name")
    tally.add(seen)
    assert last_line([tally]) == "false certified: 0, false conditional: 1, contradictions: 1"
    assert tally.counts["believed"] == 1


def test_statistical_claims_may_be_wrong_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    for miss in (0.01, 0.05, 0.5):
        for count in (10, 1000):
            tally = Tally("name")
            tally.chances = [(miss, bool(rng.random() < miss)) for _ in range(count)]
            tally.close()
            assert not tally.faults[FALSE_CONDITIONAL]
    tally.chances = [(0.05, k % 5 == 0) for k in range(1000)]
    tally.close()
    assert tally.faults[FALSE_CONDITIONAL] == 200 - allowed_misses(tally.chances) > 50


# --- the truth -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [shortest, cells])
def test_examples(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("seed", range(40))
def test_the_shortest_vector_is_the_shortest(seed: int) -> None:
    """It is in hull plus cone, and no row is on its near side: weak duality, in rationals."""
    rng = np.random.default_rng(seed)
    d, n, m = (int(rng.integers(low, high)) for low, high in ((1, 5), (1, 8), (0, 4)))
    hull = shortest.fractions(rng.integers(-3, 4, (n, d)).tolist())
    cone = shortest.fractions(rng.integers(-3, 4, (m, d)).tolist())
    vector = shortest.shortest(hull, cone)
    square = shortest.dot(vector, vector)
    assert all(shortest.dot(row, vector) >= square for row in hull)
    assert all(shortest.dot(row, vector) >= 0 for row in cone)
    # Some face has it: weights of affinely independent rows that solve for it.
    assert any(_has(vector, *rows) for rows in _faces(hull, cone, d))


def _faces(hull: Any, cone: Any, d: int) -> Any:
    for k in range(1, d + 2):
        for some in itertools.combinations(range(len(hull) + len(cone)), k):
            rows = [(*hull, *cone)[i] for i in some]
            yield rows, [i < len(hull) for i in some]


def _has(vector: Any, rows: Any, in_hull: Any) -> bool:
    system = np.array([[*row, one] for row, one in zip(rows, in_hull)], dtype=float).T
    goal = np.array([float(v) for v in vector] + [1.0])
    weights, *_ = np.linalg.lstsq(system, goal, rcond=None)
    return bool(np.abs(system @ weights - goal).max() < 1e-9 and weights.min() > -1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_all_gradients_beside_a_point_are_known(seed: int) -> None:
    """What programs find at random places beside the point is in the list; affine pieces: all."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 4))
    point = [Fraction(int(a), 2) for a in rng.integers(-1, 2, dim)]
    curved = bool(rng.random() < 0.5)
    tree = random_tree(rng, dim, point, curved=curved) if seed % 2 else two_sided(rng, dim, point)
    known = cells.gradients(tree, point)
    rows = np.array([[float(a) for a in g] for g in sorted(known)])
    x = np.array([float(q) for q in point])
    _, jac = tree.program("left")
    found = {}
    for step in 1e-7 * rng.standard_normal((400, dim)):
        g = jac(x + step)
        away = np.linalg.norm(rows - g, axis=1)
        if "norm2" in str(tree):  # at 0 it has gradients without end, in the hull of those listed
            continue
        assert away.min() <= 1e-4 * (1.0 + np.abs(g).max()), (str(tree), g, rows)
        found[int(away.argmin())] = True
    if not tree.curved and dim < 3 and len(rows) < 12:
        assert len(found) == len(rows), str(tree)


@pytest.mark.parametrize("seed", range(30))
def test_three_ways_to_write_a_function_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 4))
    tree = random_tree(rng, dim, [Fraction(0)] * dim, curved=True)
    F, (fun, jac) = tree.expression(), tree.program("left")
    for x in rng.uniform(-2, 2, (5, dim)):
        size = 1.0 + abs(fun(x)) + float(np.abs(jac(x)).max())
        assert abs(F.value(x) - fun(x)) <= 1e-11 * size
        with contextlib.suppress(gs.KinkError):  # equal arguments of a maximum
            assert np.abs(F.gradient(x) - jac(x)).max() <= 1e-11 * size
        ((*only,),) = cells.gradients(tree, exact(x))
        assert np.abs(np.array([float(a) for a in only]) - jac(x)).max() <= 1e-9 * size
