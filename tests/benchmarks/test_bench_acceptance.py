"""The verdicts, on runs whose answers are known by hand."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from benchmarks import acceptance

YES, NO, UNKNOWN = "[yes]", "[NO ]", "[ ? ]"
TIGHT = min(acceptance.GOALS)


def moments(*pairs: tuple[int, float]) -> list[tuple[int, int, float, float, float]]:
    """A course of (gradients, value), a second of CPU per gradient, half of it the function's."""
    return [(g, g, g / 2, g / 2, f) for g, f in pairs]


def test_best_known_is_the_lowest_of_everything(make_run: Any) -> None:
    runs = [
        make_run(problem="a", best_value=5.0, fun=4.0, progress=moments((1, 3.0))),
        make_run(problem="a", method="b", best_value=5.0, fun=math.nan),
        make_run(problem="b", best_value=-1.0, fun=2.0),
        make_run(problem="c", best_value=None, fun=7.0),
    ]
    assert acceptance.best_known(runs) == {"a": 3.0, "b": -1.0, "c": 7.0}


def test_best_known_passes_over_nan_wherever_it_stands(make_run: Any) -> None:
    nan = math.nan
    for fun, best, course in [(nan, 2.0, []), (2.0, nan, []), (nan, None, moments((1, 2.0)))]:
        run = make_run(fun=fun, best_value=best, progress=course)
        for runs in ([run], [run, make_run(method="b", fun=nan, best_value=None)]):
            assert acceptance.best_known(runs) == {"p-2": 2.0}


def test_runs_of_large_or_unbounded_problems_and_other_seeds_do_not_count(make_run: Any) -> None:
    kept = make_run()
    others = [
        make_run(problem="large", dim=251),
        make_run(problem="unbounded", bounded=False),
        make_run(problem="seed", seed=1),
        make_run(problem="level", level=1.0),
        make_run(problem="method", method="bundle"),
    ]
    assert acceptance.by_problem([kept, *others], "auto", 1e-3) == {"p-2": kept}


def test_certified_shares(make_run: Any) -> None:
    runs = [make_run(problem=f"p{k}", level=1e-4, values=k, gradients=0) for k in range(99)]
    runs += [make_run(problem="hard", level=1e-4, certified=False)]
    lines = acceptance.certified_shares(runs)
    assert lines[0] == f"{UNKNOWN} certified at 0.01: no runs"
    assert lines[2] == f"{YES} certified at 0.0001: 99 of 100 (wanted 97%); missed: hard"
    # 0, ..., 98 and an infinity: the median is between 49 and 50.
    assert lines[3] == f"{YES} median calls at 0.0001: 49.5 (wanted 400)"
    worse = [make_run(problem=f"w{k}", level=1e-4, certified=False) for k in range(3)]
    assert acceptance.certified_shares(runs + worse)[2].startswith(NO)


def test_a_level_that_wants_everything_forgives_nothing(make_run: Any) -> None:
    runs = [make_run(problem=f"p{k}", level=1e-2) for k in range(50)]
    assert acceptance.certified_shares(runs)[0].startswith(YES)
    runs.append(make_run(problem="hard", level=1e-2, certified=False))
    assert acceptance.certified_shares(runs)[0].startswith(NO)


def test_ratios_of_gradients_and_time(make_run: Any) -> None:
    # Within 1e-4 of the descent from 10 to 0: f <= 1e-3.
    def pair(name: str, mine: int, theirs: int) -> list[Any]:
        rest = {"problem": name, "level": TIGHT}
        return [
            make_run(progress=moments((mine - 1, 0.002), (mine, 0.001)), **rest),
            make_run(method="pygranso", group="peer", progress=moments((theirs, 0.0005)), **rest),
        ]

    lines = acceptance.against_rival(pair("a", 10, 40) + pair("b", 30, 30))
    # Ratios 1/4 and 1: the geometric mean is 1/2.
    assert lines[0].startswith(
        f"{YES} gradients to within 0.0001 of the best, against pygranso: 0.50 "
    )
    assert "2 problems where both get there; 2 and 2 of 2 get there" in lines[0]
    assert lines[1].startswith(NO)
    assert "0.500 with the function, 0.500 without" in lines[1]
    slower = acceptance.against_rival(pair("a", 10, 40) + pair("b", 31, 30))
    assert slower[0].startswith(NO)


def test_only_problems_where_both_arrive_are_compared(make_run: Any) -> None:
    runs = [
        make_run(problem=name, level=TIGHT, method=method, group=group, progress=moments((4, f)))
        for name, method, group, f in [
            ("both", "auto", "ours", 0.0),
            ("both", "pygranso", "peer", 0.0),
            ("ours alone", "auto", "ours", 0.0),
            ("ours alone", "pygranso", "peer", 5.0),
        ]
    ]
    (first, *_) = acceptance.against_rival(runs)
    assert "1.00 (wanted 0.5; 1 problems where both get there; 2 and 1 of 2 get there)" in first


def test_without_a_rival_nothing_is_said(make_run: Any) -> None:
    assert [text[:5] for text in acceptance.against_rival([make_run()])] == [UNKNOWN] * 3


def test_the_better_rival_is_the_one_with_fewer_calls_to_a_certificate(make_run: Any) -> None:
    ours = make_run()
    slow = make_run(method="pygranso", group="peer", values=100)
    loose = make_run(method="pygranso-loose", group="peer", values=10)
    failed = make_run(method="pygranso-loose", group="peer", values=1, certified=False)
    assert acceptance.better_pairs([ours, slow, loose], 1e-3) == [(ours, loose)]
    assert acceptance.better_pairs([ours, slow, failed], 1e-3) == [(ours, slow)]
    assert acceptance.better_pairs([ours, slow], 1e-3) == [(ours, slow)]


def test_who_needs_fewer_calls(make_run: Any) -> None:
    wins = [(make_run(problem=f"p{k}"), make_run(group="peer", values=31)) for k in range(17)]
    ties = [(make_run(problem=f"tie{k}", values=37), make_run(group="peer")) for k in range(3)]
    good = acceptance.calls_and_time("it", wins + ties)
    assert good[0].startswith(f"{YES} fewer calls than it at 0.001: 17 of 20 = 85%")
    assert good[0].endswith("not on: tie0, tie1, tie2")
    assert "1.000 (wanted 0.15; 20 problems)" in good[1]
    assert acceptance.calls_and_time("it", wins[:16] + ties)[0].startswith(NO)
    assert acceptance.calls_and_time("it", [])[0].startswith(UNKNOWN)
    # Nobody wins where neither has a certificate.
    neither = [(make_run(certified=False), make_run(group="peer", certified=False))]
    assert "0 of 1" in acceptance.calls_and_time("it", neither)[0]


def test_certify_alone(make_run: Any) -> None:
    # 2d + 50 = 54 gradients are allowed at d = 2.
    runs = [make_run(problem="a", certify_gradients=27), make_run(problem="b", certify_ok=False)]
    (text,) = acceptance.certify_alone(runs)
    assert text.startswith(f"{YES} certify alone at 0.001: median 15.5 gradients, 0.29 of 2d + 50")
    assert text.endswith("reached eps on 1 of 2 certified points")
    assert acceptance.certify_alone([make_run(certify_gradients=55)])[0].startswith(NO)
    assert acceptance.certify_alone([make_run(certified=False)])[0].startswith(UNKNOWN)


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.5, YES), (0.5 + 0.9e-3, YES), (0.5 + 1.1e-3, NO), (math.nan, NO)]
)
def test_final_values_are_compared_with_the_best_peer(
    make_run: Any, ours: float, verdict: str
) -> None:
    rest = {"level": TIGHT, "best_value": 0.0, "start_fun": 10.0}
    runs = [
        make_run(fun=ours, **rest),
        make_run(method="b", group="peer", fun=0.5, **rest),
        make_run(method="c", group="peer", fun=0.7, **rest),
        make_run(method="d", group="peer", fun=math.nan, **rest),
        make_run(method="ingd", group="reference", fun=0.1, **rest),
        make_run(problem="bent", convex=False, fun=99.0, **rest),
        make_run(problem="bent", convex=False, method="b", group="peer", fun=0.0, **rest),
    ]
    (text,) = acceptance.final_values(runs)
    assert text.startswith(verdict)
    assert re.search(r"(\d) of (\d)", text).groups() == ("1" if verdict == YES else "0", "1")  # type: ignore[union-attr]


def test_large_problems(make_run: Any) -> None:
    rest = {"dim": 1000, "level": 1e-2, "wall": 100.0}
    runs = [
        make_run(problem="maxq-1000", **rest),
        make_run(problem="mxhilb-1000", certified=False, **rest),
        make_run(problem="active_faces-10000", dim=10_000, level=1e-2, wall=61.0),
        make_run(problem="chained_crescent_1-10000", dim=10_000, level=1e-2, wall=59.0),
    ]
    verdicts = {
        text.split("]")[1].split(",")[0].split(":")[0].strip(): text[:5]
        for text in acceptance.large(runs)
    }
    assert verdicts["maxq at d = 1000"] == YES
    assert verdicts["mxhilb at d = 1000"] == NO
    assert verdicts["chained_lq at d = 1000"] == UNKNOWN
    assert verdicts["active_faces at d = 10000"] == NO
    assert verdicts["chained_crescent_1 at d = 10000"] == YES


def test_spread_over_seeds(make_run: Any) -> None:
    runs = [make_run(seed=seed, values=10 * (seed + 1), gradients=0) for seed in range(4)]
    (text,) = acceptance.spread(runs)
    assert text.startswith(f"{YES} 4 seeds at 0.001: certified 100.0%")
    assert "median 4.00" in text
    mixed = [make_run(problem="q", seed=s, certified=s > 0) for s in range(2)]
    (text,) = acceptance.spread(runs + mixed)
    assert text.startswith(NO)
    assert "certified 75.0%" in text
    assert text.endswith("depends on the seed: q")
    assert acceptance.spread(runs[:1]) == [f"{UNKNOWN} spread over seeds: one seed only"]


def test_the_report_has_every_section(make_run: Any) -> None:
    text = acceptance.report([make_run()])
    for title, _ in acceptance.SECTIONS:
        assert f"{title}\n[" in text


def test_own_time_is_judged_by_its_ratio(make_run: Any) -> None:
    ours = [make_run(problem=f"p{k}", dim=10, own_cpu=50e-6 * k) for k in (1, 2, 30)]
    theirs = [
        make_run(problem=f"p{k}", dim=10, method="pygranso", own_cpu=0.05) for k in (1, 2, 30)
    ]
    small = [make_run(problem="q", dim=3, own_cpu=9.0, method=m) for m in ("auto", "pygranso")]
    (found,) = acceptance.own_time([*ours, *theirs, *small])
    assert found.startswith(f"{YES} own time per call at 7 <= d <= 13 (3 problems, median): 2 us")
    assert "pygranso 1000 us, ratio 0.002" in found
    slow = [make_run(problem=f"p{k}", dim=10, own_cpu=0.005) for k in (1, 2, 30)]
    assert acceptance.own_time([*slow, *theirs])[0].startswith(NO)
    assert acceptance.own_time(small)[0].startswith(UNKNOWN)
