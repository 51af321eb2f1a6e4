"""Certify the parameters of a model for its mean loss over data: few passes where few suffice."""

from __future__ import annotations

from dataclasses import replace

from goldstein.api.inputs import call_budget, check_target, tolerance
from goldstein.certificates import GoldsteinCertificate
from goldstein.construction.cold import certificate_from
from goldstein.construction.far_ends import look_at_far_ends
from goldstein.construction.judge import describe
from goldstein.numerics.ball import LONGEST
from goldstein.oracles import CountedOracle
from goldstein.oracles.data_mean import DataMean, Progress
from goldstein.solvers.gather import Enrichment

#: Passes over the data unless the caller says otherwise: at most, and at least where memory is
#: short.
CALLS, FEWEST_CALLS = 600, 40

#: Numbers a search may keep (points and gradients): about one gigabyte.
KEPT_NUMBERS = 2**27


def certify_data(
    oracle: DataMean,
    *,
    delta: float,
    eps: float,
    seed: int,
    max_calls: int | None,
    progress: Progress,
) -> GoldsteinCertificate:
    """Return what can be proved about `oracle.start`, with a record of the data.

    First one gradient, then a few at the far end of the ball. Where the loss visibly falls nearby
    that is the answer: the point is not stationary, and many more passes hardly improve the bound.
    Where it does not, the search of `goldstein.certify` goes on from there.
    """
    point = oracle.start
    eps = tolerance(eps)
    check_target(1.0, delta, point)
    most = max(FEWEST_CALLS, min(CALLS, KEPT_NUMBERS // (2 * point.size)))
    budget = call_budget(max_calls, most)
    counted = CountedOracle(oracle, budget, LONGEST)
    meta = {**describe(oracle, "certify", seed, point), "asked_delta": float(delta)}
    if eps > 0:
        meta["asked_eps"] = eps
    with oracle.reporting(progress, int(budget)):
        found = Enrichment()
        with counted.reserved(min(8, int(budget) // 2)):
            look_at_far_ends(counted, point, float(delta), eps, seed, found)
        done = found.descent is not None and bool(found.points)
        certificate = certificate_from(
            found, point, float(delta), eps, counted, meta,
            deadline=0.0 if done else float("inf"), confirm=False,  # passes over the data are dear
        )  # fmt: skip
    return replace(certificate, meta={**certificate.meta, **oracle.meta}, digest="")
