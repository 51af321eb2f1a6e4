"""The search for sums of elements: what no other finds, from any start, and nothing false."""

import numpy as np
import pytest
from benchmarks import chains
from benchmarks.many_variables import ELEMENTS, pose, sum_of_elements

import goldstein as gs
from goldstein.numerics.element_model import ElementSystem
from goldstein.result import Status
from goldstein.solvers import Auto
from goldstein.solvers.gather import expansion, wants_second
from goldstein.solvers.partitioned import ElementBundle, KinkSides, SidePlan


def run(f, x0, **options):
    return gs.minimize(f, x0, eps=1e-2, delta=1e-2, rng=0, **options)


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_a_sum_of_elements_is_the_problem_itself(name):
    value, gradient, x0 = pose(name, 40, start=1)
    f = sum_of_elements(name, 40)
    assert np.isclose(f.value(x0), value(x0), rtol=1e-12)
    assert np.allclose(f.gradient(x0), gradient(x0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("start", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["chained_lq", "chained_mifflin_2"])
def test_as_many_kinks_as_variables_are_certified_in_few_calls(name, start):
    f, plain = sum_of_elements(name, 1000), gs.problems.get(name, d=1000)
    res = run(f, pose(name, 1000, start)[2], max_calls=1000)
    assert res.success
    assert res.fun <= plain.best_value + 1e-4
    # The certificate is the ordinary one: it verifies for the plain function as well.
    assert all(res.certificate.verify(f, seed=seed).ok for seed in (11, 12))
    assert res.certificate.verify(plain, seed=13).ok


@pytest.mark.parametrize("name", ["brown_2", "chained_cb3_1", "chained_crescent_2"])
def test_elements_with_more_than_two_sides_are_certified(name):
    res = run(sum_of_elements(name, 1000), pose(name, 1000, 1)[2], max_calls=4000)
    assert res.success


@pytest.mark.parametrize("start", [0, 2])
def test_curved_kinks_are_certified_in_one_run(start):
    f = sum_of_elements("chained_mifflin_2", 4000)
    res = run(f, pose("chained_mifflin_2", 4000, start)[2], max_calls=400)
    assert res.success
    assert res.certificate.verify(f, seed=11).ok


@pytest.mark.parametrize("graph", chains.GRAPHS)
@pytest.mark.parametrize("seed", [1, 2])
def test_kinks_drawn_at_random_are_certified_in_few_calls(graph, seed):
    # Maxima of three planes, of bowls, of moduli and squares; |x|, and smooth terms.
    f = chains.drawn(graph, 400, seed)
    res = run(f, np.zeros(f.dim), max_calls=400)
    assert res.success
    assert all(res.certificate.verify(f, seed=seed).ok for seed in (11, 12))


def test_a_chain_of_moduli_and_squares_is_certified_in_few_calls():
    f = chains.the_chain(1000, 0)
    res = run(f, np.zeros(1000), max_calls=400)
    assert res.success
    assert res.certificate.verify(f, seed=11).ok


def test_curvature_belongs_to_pieces():
    # max(|u|, (u - 3)^2 - 6): near 0 only the modulus is seen, and it has no curvature.
    def both(u):
        q = (u - 3.0) ** 2 - 6.0
        return np.maximum(abs(u), q), np.where(abs(u) >= q, np.sign(u), 2.0 * (u - 3.0))

    system = ElementSystem(np.array([[0]]), 1)
    start = np.array([-3.0])
    bundle = ElementBundle(system, 6, start, *both(start)[:1], both(start)[1][None])
    for place in (-2.0, -1.5, -1.0, 2.0, 1.0, 0.7):
        y = np.array([place])
        value, slope = both(y)
        bundle.learn(y, value, slope[None], moves=False)
    # Of the first piece nobody knows.
    steep = (np.abs(bundle.slopes[:, 0, 0]) > 1.0 + 1e-9) & (np.arange(6) > 0)
    curvatures = bundle.curvatures[:, 0, 0, 0]
    assert np.allclose(curvatures[bundle.used[:, 0] & steep], 2.0)
    flat = np.abs(bundle.slopes[:, 0, 0]) <= 1.0 + 1e-9
    assert not curvatures[bundle.used[:, 0] & flat].any()


def test_shares_of_three_sides_come_about():
    # Three planes meet at 0; the nearest corner is not always the one that lacks most.
    system = ElementSystem(np.array([[0], [1]]), 2)
    slopes = np.array([[[-1.0], [0.0]], [[9.0], [1.0]], [[0.0], [-2.0]]])
    bundle = ElementBundle(system, 3, np.zeros(2), np.zeros(1), slopes[0])
    bundle.slopes[:], bundle.used[:], bundle.weights[:] = slopes, True, 1.0 / 3.0
    sides = KinkSides(bundle, 1e-2, np.random.default_rng(0))
    assert sides.there[:3].all()
    sides.share = np.where(sides.there, np.array([[0.3], [0.5], [0.2], [0.0]]), 0.0)
    plan = SidePlan(sides, 1e-4, 40)
    over = False
    while not over:
        over = plan.told(sides.slopes[plan.wanted()[0]])
    assert np.abs(plan.missing).max() <= 1e-3


def test_both_sides_of_a_kink_stay_known():
    # max(-x, 3 x, 9 x - 6) at 0: steps that fail on the side of x must not push out the other.
    system = ElementSystem(np.array([[0]]), 1)
    bundle = ElementBundle(system, 3, np.zeros(1), np.zeros(1), np.array([[-1.0]]))
    for place, value, slope in [(2.0, 12.0, 9.0), (0.5, 1.5, 3.0), (-0.1, 0.1, -1.0)]:
        at = np.array([place])
        bundle.learn(at, np.array([value]), np.array([[slope]]), moves=False)
    assert {-1.0, 3.0} <= set(bundle.slopes.ravel())
    # So the model does not promise what lies beyond the kink.
    found, fall, _ = bundle.model(1e-3)
    assert abs(found.v[0]) <= 1e-6
    assert fall <= 1e-6


def test_it_is_the_elements_that_help():
    f, x0 = sum_of_elements("chained_mifflin_2", 300), pose("chained_mifflin_2", 300)[2]
    assert run(f, x0, max_calls=600).success
    assert not run(f, x0, max_calls=600, method=Auto(elements=False)).success


def test_the_same_seed_gives_the_same_run():
    f, x0 = sum_of_elements("chained_mifflin_2", 200), pose("chained_mifflin_2", 200)[2]
    one, other = run(f, x0), run(f, x0)
    assert np.array_equal(one.x, other.x)
    assert one.nfev + one.ngev == other.nfev + other.ngev
    assert (np.diff(one.history.fun) <= 0).all()


def test_a_checkpoint_is_resumed(tmp_path):
    f, x0 = sum_of_elements("chained_lq", 100), pose("chained_lq", 100)[2]
    cut = run(f, x0, max_calls=30, checkpoint=tmp_path / "run.journal")
    assert not cut.success
    resumed = run(f, x0, checkpoint=tmp_path / "run.journal")
    assert resumed.success
    assert np.array_equal(resumed.x, run(f, x0).x)


def test_few_variables_and_single_elements_work_too():
    modulus = (lambda u: abs(u[0] - 1.0), lambda u: np.sign(u - 1.0))
    f = gs.PartiallySeparable([modulus, (lambda u: u @ u, lambda u: 2 * u)], [[0], [0, 1]])
    res = run(f, [3.0, -2.0])
    assert res.success
    assert np.allclose(res.x, [0.5, 0.0], atol=0.02)


def test_where_elements_are_not_finite_the_search_steps_back():
    chain = np.arange(49)[:, None] + [0, 1]

    def value(u):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.abs(u[:, 0] - u[:, 1]) - np.log(u[:, 0])  # NaN for negative numbers

    def gradient(u):
        s = np.sign(u[:, 0] - u[:, 1])
        return np.stack([s - 1.0 / u[:, 0], -s], axis=1)

    modulus = (lambda u: 5.0 * np.abs(u[:, 0]), lambda u: 5.0 * np.sign(u))
    f = gs.PartiallySeparable([(value, gradient), modulus], [chain, np.arange(50)[:, None]])
    res = run(f, np.full(50, 3.0), max_calls=20_000)
    assert res.success


def test_a_wrong_gradient_is_found_out():
    def wrong(u):
        right = ELEMENTS["chained_lq"](u)[1]
        return np.stack([right[:, 0], -right[:, 1]], axis=1)

    f = gs.PartiallySeparable(
        (lambda u: ELEMENTS["chained_lq"](u)[0], wrong), np.arange(49)[:, None] + [0, 1]
    )
    res = run(f, np.full(50, -0.5), max_calls=20_000)
    assert res.status is Status.WRONG_GRADIENT


@pytest.mark.parametrize("count", [12, 25])
def test_every_share_is_a_sum_of_weights_of_the_expansion(count):
    weights = expansion(count)
    assert np.isclose(weights.sum(), 1.0)
    shares = np.linspace(0.0, 1.0, 1001)
    missing, left = shares.copy(), 1.0
    for weight in weights:
        missing = missing - weight * wants_second(missing, left)
        left -= weight
    assert np.abs(missing).max() <= weights[-1]
