"""Starts, failures, distinct points and folders of `multistart`."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import goldstein as gs
from goldstein.parallel import multistart
from goldstein.storage.folder import described


def valley(x):
    return float(np.abs(np.abs(x) - 1.0).sum() + 0.1 * x[0])


def slope(x):
    return np.sign(np.abs(x) - 1.0) * np.sign(x) + np.array([0.1, 0.0])


def anywhere(rng):
    return rng.uniform(-2, 2, 2)


def run(starts=anywhere, fun=valley, jac=slope, **options):
    settings = {"n_starts": 6, "eps": 1e-3, "delta": 1e-3, "rng": 0} | options
    return multistart(fun, starts, jac, **settings)


def test_a_start_is_a_run_of_minimize():
    found = run()
    again = gs.minimize(
        valley, anywhere_of(3), slope, eps=1e-3, delta=1e-3, rng=found.results[3].seed
    )
    assert again.certificate.digest == found.results[3].certificate.digest


def anywhere_of(index):
    from goldstein.numerics.streams import stream

    return anywhere(stream(0, index, "start"))


def test_more_starts_leave_the_first_ones_alone():
    few, many = run(), run(n_starts=9)
    assert [r.fun for r in many.results[:6]] == [r.fun for r in few.results]


def test_points_are_distinct_counted_and_sorted():
    found = run(n_starts=24)
    assert [point.fun for point in found.points] == pytest.approx([-0.1, -0.1, 0.1, 0.1], abs=5e-3)
    assert sorted(k for point in found.points for k in point.starts) == list(range(24))
    assert found.best.fun == min(r.fun for r in found.results)
    for point in found.points:
        assert point.certificate.verify(valley, slope).ok


def test_a_plain_is_one_point():
    """Every point of [-1, 1] minimises max(|x| - 1, 0): answers there are one point."""
    found = run(
        np.array([[-3.0], [2.0], [-2.5]]),
        lambda x: max(abs(x[0]) - 1.0, 0.0),
        lambda x: np.sign(x) * (np.abs(x) > 1),
        n_starts=None,
    )
    assert len({round(float(r.x[0]), 3) for r in found.results}) > 1
    assert [point.count for point in found.points] == [3]


def test_a_start_that_fails_is_listed_and_the_others_are_there():
    def sometimes(x):
        if x[0] > 50:
            raise OSError("no license")
        return valley(x)

    found = run([[1.5, 1.5], [60.0, 0.0], [-1.5, 0.5]], sometimes, n_starts=None)
    assert [r is None for r in found.results] == [False, True, False]
    (failure,) = found.failures
    assert (failure.index, failure.tries) == (1, 2)
    assert "no license" in failure.reason
    assert "no license" in repr(found)
    assert "1 failed" in repr(found)


def test_if_all_fail_the_error_is_raised():
    with pytest.raises(gs.InputTypeError, match="accuracy is eps"):
        run(tol=1e-3)
    with pytest.raises(gs.GoldsteinError, match=r"every search failed.*ZeroDivisionError"):
        run(fun=lambda x: 1 / 0)


@pytest.mark.parametrize(
    ("starts", "options", "words"),
    [
        (anywhere, {"n_starts": None}, "how many"),
        (np.ones(3), {"n_starts": None}, "one start in each row"),
        (7, {"n_starts": None}, "sequence of points"),
        ([[1.0, 1.0]], {"n_starts": 3}, "only 1 starts"),
        (anywhere, {"n_starts": 0}, "positive integer"),
        (anywhere, {"checkpoint": "x"}, "folder="),
    ],
)
def test_bad_input_is_named(starts, options, words):
    with pytest.raises((gs.InputError, gs.InputTypeError), match=words):
        run(starts, **options)


def test_a_stop_keeps_what_is_there():
    seen = []

    def enough(index, result):
        seen.append(index)
        return len(seen) == 2

    found = run(on_result=enough)
    assert len(seen) == 2
    assert sum(r is not None for r in found.results) == 2
    assert [f.reason.startswith("not run") for f in found.failures] == [True] * 4


def test_ctrl_c_ends_all_starts_not_one():
    third, calls = anywhere_of(2), []

    def interrupted(x):
        if calls or np.array_equal(x, third):
            calls.append(1)
        if len(calls) == 3:  # before there is a certificate that the start would end with
            raise KeyboardInterrupt
        return valley(x)

    found = run(fun=interrupted, n_starts=20)
    assert any(r is not None for r in found.results)
    assert len(found.failures) > 10


def bowl(x):
    return float(abs(x[0]) + 0.05 * (x[1] - 3.0) ** 2)


def bowl_slope(x):
    return np.array([np.sign(x[0]), 0.1 * (x[1] - 3.0)])


@pytest.mark.parametrize("late", [False, True], ids=["before the proof", "with it in hand"])
def test_ctrl_c_ends_all_starts_whenever_it_comes(tmp_path, late):
    starts, question = [[2.0, k / 10] for k in range(9)], {"eps": 0.3, "delta": 0.1, "rng": 0}
    # The callback stops no start: Ctrl-C is told from it.
    first = multistart(bowl, starts[:2], bowl_slope, callback=lambda x: None, **question)
    whole, second = (result.nfev + result.ngev for result in first.results)
    calls = []

    def interrupted(x):
        calls.append(1)
        if len(calls) == whole + (second - 8 if late else 5):
            raise KeyboardInterrupt
        return bowl(x)

    def counted(x):
        calls.append(1)
        return bowl_slope(x)

    found = multistart(
        interrupted, starts, counted, callback=lambda x: None, folder=tmp_path, **question
    )
    assert [r is not None for r in found.results[:3]] == [True, late, False]
    assert len(found.failures) == 7 + (not late)
    if late:
        cut = found.results[1]
        assert (cut.status, cut.stopped_by, cut.success) == (gs.Status.STOPPED, "Ctrl-C", True)
        assert cut.certificate.verify(bowl, bowl_slope).ok
    # Resumed, the start that was cut short goes its whole way.
    assert len(list(tmp_path.glob("*.search"))) == 1


def test_starts_that_a_callback_stops_with_their_proof_are_resumed(tmp_path):
    settings = {
        "starts": [[2.0, 0.0], [-1.0, 1.0]], "fun": bowl, "jac": bowl_slope, "n_starts": None,
        "eps": 0.3, "delta": 0.1, "callback": low, "folder": tmp_path,
    }  # fmt: skip
    once, again = run(**settings), run(**settings)
    assert [r.stopped_by for r in once.results] == ["the callback"] * 2
    assert [r.success for r in once.results] == [True] * 2
    assert [r.time for r in again.results] == [r.time for r in once.results]
    assert [r.stopped_by for r in again.results] == ["the callback"] * 2


def low(x):
    return bowl(x) < 0.3


def test_a_folder_resumes_bit_for_bit(tmp_path):
    whole = run()
    run(folder=tmp_path, on_result=lambda index, result: index >= 2)
    assert len(list(tmp_path.glob("*.search"))) == 3
    asked = []

    def counting(x):
        asked.append(1)
        return valley(x)

    counting.__name__ = "valley"
    resumed = run(folder=tmp_path, rng=None, fun=counting)
    for a, b in zip(resumed.results, whole.results):
        assert a.x.tobytes() == b.x.tobytes()
        assert (a.fun, a.nfev, a.certificate.digest) == (b.fun, b.nfev, b.certificate.digest)
        assert a.history.as_arrays().keys() == b.history.as_arrays().keys()
    fresh = len(asked)
    asked.clear()
    run(folder=tmp_path, fun=counting)
    assert len(asked) < 0.75 * fresh  # confirmed, not searched again; runs are short


def test_a_folder_of_another_run_is_refused_with_the_reason(tmp_path):
    run(folder=tmp_path)
    with pytest.raises(gs.InputError, match=r'"eps": 0.001.* and is .*"eps": 0.002'):
        run(folder=tmp_path, eps=2e-3)
    with pytest.raises(gs.InputError, match="seed was 0 and is 1"):
        run(folder=tmp_path, rng=1)
    with pytest.raises(gs.InputError, match="another start"):
        run(np.ones((6, 2)), folder=tmp_path)

    def other(x):
        return valley(x) + 0.25

    other.__name__ = "valley"
    with pytest.raises(gs.InputError, match="another function"):
        run(folder=tmp_path, fun=other)


def test_a_forged_result_in_a_folder_is_refused(tmp_path):
    """A file may be made by anybody: its certificate must hold for the function."""
    from dataclasses import replace

    from goldstein.storage.folder import Folder, digest

    honest = run(folder=tmp_path)
    there = np.array([1.5, 1.5])
    forged = replace(
        honest.results[0],
        x=there,
        fun=valley(there),
        certificate=replace(honest.results[0].certificate, x=there, digest=""),
    )
    options = {"eps": 1e-3, "delta": 1e-3}
    identity = {"kind": "multistart", "function": "valley", "seed": 0}
    with Folder(tmp_path, identity | {"options": described(options)}) as folder:
        folder.save(0, digest(anywhere_of(0)), forged)
    with pytest.raises(gs.InputError, match="another function"):
        run(folder=tmp_path)


def test_a_damaged_file_is_done_again(tmp_path):
    whole = run(folder=tmp_path)
    file = tmp_path / "000002.search"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.warns(gs.CheckpointWarning, match="is damaged, and done again"):
        again = run(folder=tmp_path)
    assert again.results[2].certificate.digest == whole.results[2].certificate.digest


def test_bounds_and_structured_starts_survive_the_folder(tmp_path):
    kkt = run(folder=tmp_path / "a", bounds=[(0.2, 0.6)] * 2)
    again = run(folder=tmp_path / "a", bounds=[(0.2, 0.6)] * 2)
    assert [r.certificate.digest for r in kkt.results] == [
        r.certificate.digest for r in again.results
    ]
    assert np.array_equal(kkt.best.bound_multipliers, again.best.bound_multipliers)

    def nested(p):
        return float(np.abs(p["a"]).sum() + abs(p["b"]))

    def nested_slope(p):
        return {"a": np.sign(p["a"]), "b": np.sign(p["b"])}

    starts = [{"a": np.ones((2, 2)), "b": np.array(0.5)}]
    for _ in range(2):
        found = run(starts, nested, nested_slope, n_starts=None, folder=tmp_path / "b")
        assert found.best.x["a"].shape == (2, 2)
        assert found.best.success


def test_expressions_and_near_certificates_travel(tmp_path):
    x = gs.Variable(2)
    F = gs.norm1(x - np.array([1.0, 2.0]))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = multistart(
                F, np.zeros((3, 2)) + np.arange(3)[:, None], eps=1e-3, delta=1e-3, rng=0,
                stationarity="near", n_jobs=2, folder=tmp_path,
            )  # fmt: skip
        assert [point.count for point in found.points] == [3]
        assert found.best.certificate.verify(F).ok


def test_terms_of_plus_are_part_of_the_run(tmp_path):
    for _ in range(2):
        found = run(plus=gs.prox.l1(0.5), folder=tmp_path)
        assert found.best.certificate.kind == "plus"
        assert found.best.certificate.verify(valley, slope).ok
    with pytest.raises(gs.InputError, match="belongs to another run"):
        run(plus=gs.prox.l1(0.25), folder=tmp_path)


def forge(folder, change, **options):
    """Replace the first result of a run by another one, with all hashes right."""
    from goldstein.storage.folder import Folder, digest

    honest = run(folder=folder, **options)
    asked = {**options, "eps": 1e-3, "delta": 1e-3}
    identity = {"kind": "multistart", "function": "valley", "seed": 0}
    with Folder(folder, identity | {"options": described(asked)}) as held:
        held.save(0, digest(anywhere_of(0)), change(honest.results[0]))
    with pytest.raises(gs.InputError, match="another function"):
        run(folder=folder, **options)


def test_a_success_in_a_folder_needs_a_claim_as_strong_as_asked(tmp_path):
    """The claims themselves are true here; they are weaker than what was asked, or absent."""
    from dataclasses import replace

    there = np.array([1.5, 1.5])
    weak = gs.certify(valley, there, slope, delta=1e-3, rng=0)
    assert weak.eps > 0.1
    forge(tmp_path / "weak", lambda r: replace(r, x=there, fun=valley(there), certificate=weak))
    forge(tmp_path / "none", lambda r: replace(r, certificate=None))


def test_a_claim_about_another_term_in_a_folder_is_refused(tmp_path):
    """Every point is stationary for f plus a box that holds it alone."""
    from dataclasses import replace

    def change(result):
        there = np.array([1.5, 1.5])
        g = slope(there)
        box = gs.prox.box(there, there)
        claim = gs.PlusCertificate(there, 1e-3, 1e-9, there[None], g[None], np.ones(1), -g, box)
        assert claim.verify(valley, slope).ok
        fun = valley(there) + gs.prox.l1(0.5).value(there)
        return replace(result, x=there, fun=fun, certificate=claim)

    forge(tmp_path, change, plus=gs.prox.l1(0.5))


def test_a_folder_is_held_by_one_run(tmp_path):
    said = []

    def again(index, result):
        if not said:
            with pytest.raises(gs.CheckpointError, match="in use by another run") as caught:
                run(folder=tmp_path)
            said.append(str(caught.value))

    whole = run(folder=tmp_path, on_result=again)
    assert said
    assert len(run(folder=tmp_path).results) == len(whole.results)


def test_starts_of_which_there_are_only_values(tmp_path):
    """Values, and constraints without a gradient; kept in a folder and believed only when asked."""
    starts = np.random.default_rng(0).uniform(-2, 2, (3, 2))
    room = {"type": "ineq", "fun": lambda x: 0.5 - x[0]}

    def bent(x, a):
        return a * (abs(x[0] - 1) + 2 * abs(x[1] + x[0] ** 2))

    task = {"eps": 0.4, "delta": 1e-2, "rng": 0, "args": (1.0,)}
    for more, kind in (({}, "values"), ({"constraints": room}, "values-kkt")):
        folder = tmp_path / kind
        found = multistart(bent, starts, "2-point", folder=folder, **task, **more)
        assert {point.certificate.kind for point in found.points} == {kind}
        again = multistart(bent, starts, "2-point", folder=folder, **task, **more)
        assert [r.x.tolist() for r in again.results] == [r.x.tolist() for r in found.results]
    named = multistart(bent, starts, method="values", **task)
    assert named.points


W = gs.Variable(2)


@pytest.mark.parametrize("term", [gs.prox.l1(0.5), gs.prox.box(-1.0, 0.5)], ids=["l1", "box"])
def test_near_claims_about_f_plus_h_are_resumed(tmp_path, term):
    settings = {
        "jac": None, "eps": 1e-2, "delta": 1e-2, "n_starts": 3, "plus": term,
        "stationarity": "near", "folder": tmp_path,
    }  # fmt: skip
    F = gs.norm1(W - 1.0) + 0.5 * gs.sum_squares(W)
    once, again = run(fun=F, **settings), run(fun=F, **settings)
    kinds = {result.certificate.kind for result in once.results}
    assert kinds <= {"near", "near-kkt"}
    assert [r.time for r in again.results] == [r.time for r in once.results]
    another = gs.norm1(W - 1.0) + 0.6 * gs.sum_squares(W)
    with pytest.raises(gs.InputError, match="another function"):
        run(fun=another, **settings)
