"""Nobody gets a false claim about f + h past the check."""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import goldstein as gs
from goldstein.certificates import PlusCertificate

CENTRE = np.array([3.0, 0.1, -2.0])
TERM = gs.prox.l1(0.5)


def f(x):
    return 0.5 * float((x - CENTRE) @ (x - CENTRE))


def grad(x):
    return x - CENTRE


@pytest.fixture(scope="module")
def honest():
    res = gs.minimize(f, np.ones(3), grad, plus=TERM, eps=1e-5, delta=1e-5, rng=0)
    assert res.success
    return res.certificate


def failed(certificate, **options):
    verdict = certificate.verify(f, grad, **options)
    assert not verdict.ok
    return {check.name for check in verdict.checks if not check.ok}


def test_an_honest_one_passes_and_survives_its_file(honest, tmp_path):
    assert honest.verify(f, grad, plus=TERM).ok
    again = gs.load_certificate(honest.save(tmp_path / "c"))
    assert again.digest == honest.digest
    assert again.term == TERM
    assert again.verify(f, grad).ok


def test_changed_fields_show(honest):
    for change in (
        {"eps": honest.eps / 2},
        {"term": gs.prox.l1(0.6)},
        {"x": honest.x + 1e-9},
        {"subgradient": honest.subgradient * 0.999},
        {"label": "certified"},
    ):
        assert "content" in failed(replace(honest, **change))


def test_a_forged_subgradient_is_refused(honest):
    """v = -g makes the sum vanish everywhere; but it is no subgradient of h."""
    for x in (np.zeros(3), np.ones(3), np.array([2.5, 0.3, -1.5])):
        y = x + 1e-7
        forged = replace(
            honest, x=x, points=y[None], gradients=grad(y)[None], weights=np.ones(1),
            subgradient=-grad(y), delta=1e-5, eps=1e-5, digest="",
        )  # fmt: skip
        assert "subgradient" in failed(forged)


def test_a_subgradient_of_the_wrong_sign_or_size_is_refused(honest):
    v = honest.subgradient
    for wrong in (-v, v * [1, 1.0000001, 1], np.where(honest.x == 0, 0.5000001, v), np.zeros(3)):
        forged = replace(honest, subgradient=wrong, digest="")
        assert failed(forged)


def test_another_term_is_another_claim(honest):
    """A smaller weight does not allow the same v; a larger one does, and is shown as such."""
    assert failed(replace(honest, term=gs.prox.l1(0.4), digest=""))
    assert failed(replace(honest, term=gs.prox.l1(0.6), digest=""))  # v is too short on the support
    assert failed(replace(honest, term=gs.prox.box(-9.0, 9.0), digest=""))
    assert "term" in failed(honest, plus=gs.prox.l1(0.6))
    assert "l1(weight=0.5)" in honest.summary()
    assert "l1(weight=0.5)" in repr(honest.verify(f, grad))


def test_tiny_nonzeros_are_paid_for(honest):
    """x next to a zero, with the subgradients of the zero: true within delta, at a price."""
    x = honest.x.copy()
    zero = int(np.flatnonzero(x == 0)[0])
    for tiny, allowed in ((1e-16, True), (1e-9, False)):
        x[zero] = tiny
        moved = replace(honest, x=x.copy(), eps=honest.eps + 1e-6, digest="")
        assert moved.verify(f, grad).ok == allowed
        gap = 2 * 0.5 * tiny / moved.delta
        assert replace(moved, eps=honest.eps + gap + 1e-6, digest="").verify(f, grad).ok


def test_gradients_of_another_function_and_wrong_ones_are_refused(honest):
    assert not honest.verify(lambda x: f(x) + x[0], lambda x: grad(x) + [1.0, 0, 0]).ok
    assert not honest.verify(lambda x: f(2 * x), grad).ok
    res = gs.minimize(
        f, np.ones(3), lambda x: grad(x) - [0, 0, 1.0], plus=TERM, eps=1e-5, delta=1e-5
    )
    assert not res.success
    assert res.status is gs.Status.WRONG_GRADIENT


def test_a_kink_that_automatic_differentiation_hides():
    """f = relu(x) - relu(-x) has slope 1 everywhere, and 0 at 0 as programs compute it."""

    def slope(x):
        return (x > 0).astype(float) + (x < 0)

    def ramp(x):
        return float((np.maximum(x, 0) - np.maximum(-x, 0)).sum())

    forged = PlusCertificate(
        np.zeros(2), 1e-3, 1e-3, np.zeros((1, 2)), np.zeros((1, 2)), np.ones(1), np.zeros(2),
        gs.prox.l1(0.25),
    )  # fmt: skip
    assert not forged.verify(ramp, slope).ok


def test_noise_and_nonsense_numbers_are_refused(honest):
    noise = np.random.default_rng(0)
    assert not honest.verify(f, lambda x: grad(x) + 0.1 * noise.standard_normal(3)).ok
    assert failed(replace(honest, subgradient=np.full(3, math.nan), digest=""))
    assert failed(replace(honest, delta=0.0, digest=""))
    assert failed(replace(honest, delta=math.inf, digest=""))
    assert failed(replace(honest, weights=-honest.weights, digest=""))
    assert not honest.verify(f, lambda x: np.full(3, math.nan)).ok
    res = gs.minimize(
        f, np.ones(3), lambda x: grad(x) + 0.1 * noise.standard_normal(3), plus=TERM, eps=1e-5,
        delta=1e-5,
    )  # fmt: skip
    assert not res.success


def test_single_precision_cannot_speak_of_a_small_ball(honest):
    assert not honest.verify(f, lambda x: grad(x).astype(np.float32)).ok


def test_points_outside_the_set_are_refused():
    term = gs.prox.simplex()
    res = gs.minimize(f, np.full(3, 1 / 3), grad, plus=term, eps=1e-4, delta=1e-4, rng=0)
    assert res.success
    x = res.x.copy()
    x[int(x.argmax())] -= 1e-3  # the sum is off by more than delta
    assert not replace(res.certificate, x=x, digest="").verify(f, grad).ok
    assert not replace(res.certificate, x=x - 0.1, digest="").verify(f, grad).ok


@pytest.mark.parametrize(
    "change",
    [
        {"term": {"name": "l1", "weight": -1.0}},
        {"term": {"name": "l1"}},
        {"term": {"name": "os.system", "weight": 1.0}},
        {"term": {"name": "group_l2", "weight": 1.0, "groups": [[0, 1], [1]]}},
        {"term": {"name": "group_l2", "weight": 1.0, "groups": [[-1]]}},
        {"term": {"name": "nuclear", "weight": 1.0, "shape": [7, 7]}},
        {"term": "l1"},
        {"eps": "small"},
        {"digest": ""},
        {"more": 1},
    ],
)
def test_tampered_files_are_refused(honest, tmp_path, change):
    from goldstein.storage.codec import write_record

    kind, arrays, fields = honest.to_record()
    path = write_record(tmp_path / "forged", kind, arrays, {**fields, **change})
    with pytest.raises(gs.CertificateFileError):
        gs.load_certificate(path)


def test_a_changed_byte_is_noticed(honest, tmp_path):
    path = honest.save(tmp_path / "c")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(parts["header.json"])
    header["fields"]["term"]["weight"] = 0.6
    parts["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(gs.CertificateFileError, match="hash"):
        gs.load_certificate(path)


def test_a_parameter_among_many_is_not_hidden() -> None:
    """Without `plus=` it is for the reader to see what the claim is about."""
    weights = np.full(40, 0.1)
    weights[30] = 1e9
    assert "1000000000.0" in repr(gs.prox.l1(weights))
    assert repr(gs.prox.l1(0.1)) != repr(gs.prox.l1(0.1 * (1 + 1e-9)))


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_what_cancels_exactly_is_stated_with_room_for_curvature(delta):
    """One gradient and its subgradient cancel to the last bit: no other point says the same."""

    def value(x):
        return float(np.abs(x - 1.0978).sum() + 0.1 * ((x - 2.0978) ** 2).sum())

    def slope(x):
        return np.sign(x - 1.0978) + 0.2 * (x - 2.0978)

    for seed in range(3):
        term = gs.prox.l1(4.5)
        claim = gs.certify(value, [0.0], slope, plus=term, delta=delta, rng=seed)
        assert claim.eps < 1e-7  # one looks as far as a coarser f would ask for: it bends
        assert all(claim.verify(value, slope, plus=term, seed=k).ok for k in range(4))


@pytest.mark.parametrize("seed", [27, 28, 35])
def test_a_claim_at_a_kink_looks_as_far_beside_its_points_as_a_check_does(seed):
    """At |x| = 500 one or two of ten checks displaced a point across the kink next to it."""
    centre = 500 * np.random.default_rng(seed).uniform(-1, 1, 6)

    def value(x):
        return float(np.abs(x - centre).sum() + 0.1 * ((x - centre - 1) ** 2).sum())

    def slope(x):
        return np.sign(x - centre) + 0.2 * (x - centre - 1)

    term = gs.prox.l1(0.03)
    claim = gs.certify(value, centre, slope, plus=term, delta=5e-5, rng=0)
    assert all(claim.verify(value, slope, plus=term, seed=again).ok for again in range(10))
