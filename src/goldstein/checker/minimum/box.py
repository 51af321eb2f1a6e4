"""A minimum inside a box, by cuts, for a function whose curvature its owner declares.

Let f + rho/2 |z|^2 be convex. A gradient g of f at p = y + s gives, for z = y + t,

    f(z) >= b + c.t - rho/2 |t|^2,   c = g + rho s,   b = f(p) - <g, s> - rho/2 |s|^2,

and so do convex combinations of such cuts. On the face t_i = +-r_i of the box |t_k| <= r_k the
right side is concave in every other t_k: its minimum is at a corner, b +- c_i r_i minus the sum of
the other |c_k| r_k and of rho/2 r_k^2. If that exceeds f(y) on every face, a lowest point of the
box is inside, a local minimiser; if f is convex it is a global one. On the whole box f is at
least b minus the sum of all |c_k| r_k and of rho/2 r_k^2. If f - c/2 |z|^2 is convex with c > 0
there is one minimiser z, and f(x) >= f(z) + c/2 |x - z|^2: it is within sqrt(2 gap/c) of x.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker import errors, exact, verification
from goldstein.checker.rationals import fraction_upper, sqrt_upper, squared_norm, to_fractions

#: Values of one function may contradict its own cuts by so many units of rounding.
ROUNDING = 2.0**-40


def check_box(cert: Any, f: Any) -> verification.Verification:
    """Decide a claim about a box; f is asked again, and believed."""
    found = verification.Verification(eps=math.inf, delta=0.0, label="conditional")
    k, d = cert.points.shape
    fits = d == cert.x.size == cert.widths.size and cert.weights.shape == (2 * d + 1, k)
    numbers = (cert.points, cert.weights, cert.widths, cert.x, cert.gap, cert.eps, cert.curvature)
    usable = fits and all(np.isfinite(n).all() for n in numbers) and min(cert.gap, cert.eps) >= 0
    if not found.add("numbers", bool(usable), f"finite, {2 * d} faces and the box, {k} cuts"):
        return found
    around = cert.delta == 0 and list(cert.exact_pivot) == to_fractions(cert.x)
    wide = around and (cert.widths > 0).all()
    wide = wide and cert.radius == (math.inf if cert.scope == "global" else cert.widths.min())
    found.add("box", bool(wide), "positive widths around x itself, the radius the smallest")
    sums = [sum(to_fractions(row)) for row in cert.weights]
    right = bool((cert.weights >= 0).all()) and all(total > 0 for total in sums)
    if not found.add("weights", right, "nonnegative, some of them positive") or not found.ok:
        return found
    try:
        here = Fraction(f.value(cert.x))
        values = [f.value(p) for p in cert.points]
        gradients = [f.gradient(p) for p in cert.points]
    except errors.GoldsteinError as failure:
        found.add("function", False, str(failure))
        return found
    rho = max(Fraction(0), -Fraction(cert.curvature))
    lows, steep = _lows(cert, values, gradients, rho, sums)
    found.add("cuts", *consistent(cert, values, gradients))
    convex = cert.curvature >= 0
    above = [low > here for low in lows[:-1]]
    worst = min((fraction_upper(low - here) for low in lows[:-1]), default=0.0)
    found.add("faces", all(above), f"{sum(above)} of {2 * d} faces are higher, by {worst:.3g}")
    gap = max(here - lows[-1], Fraction(0))
    found.add("gap", gap <= Fraction(cert.gap), f"recomputed {fraction_upper(gap):.6g}")
    scope = cert.scope == "box" or (cert.scope == "global" and convex)
    found.add("scope", scope, "a box; everywhere only for a convex function")
    far = math.sqrt(math.fsum(r * r for r in cert.widths.tolist())) * (1 + 2.0**-40)
    strong = Fraction(max(0.0, cert.curvature))
    if strong:  # a minimiser z has f(x) >= f(z) + strong/2 |x - z|^2, and f(x) - f(z) <= gap
        far = min(far, sqrt_upper(2 * gap / strong))
    plain = cert.within is not None and cert.within >= far and cert.strict
    plain = plain and (not cert.unique or strong > 0)
    who = "the one minimiser is" if strong else "a local minimiser, maybe not the only one, is"
    found.add("flags", plain, f"{who} within {far:.6g}")
    found.eps = steep
    found.add("bound", steep <= cert.eps, f"recomputed eps {steep:.6g}, claimed {cert.eps:.6g}")
    found.add("label", cert.label in ("conditional", "estimated"), "the declaration is believed")
    return found


def _lows(
    cert: Any, values: list[float], gradients: list[Any], rho: Fraction, sums: list[Any]
) -> tuple[list[Fraction], float]:
    """Return lower bounds of f on every face, and on the box; and how steep the latter is at x."""
    y, r = to_fractions(cert.x), to_fractions(cert.widths)
    cuts = []
    for p, value, g in zip(cert.points, values, gradients):
        s, g = [a - b for a, b in zip(to_fractions(p), y)], to_fractions(g)
        b = Fraction(value) - sum((a * v for a, v in zip(g, s)), Fraction(0))
        cuts.append([b - rho / 2 * sum(v * v for v in s), *(a + rho * v for a, v in zip(g, s))])
    table = exact.Exact.of([n for row in cuts for n in row]).reshape(len(cuts), -1)
    lows = []
    for j, (row, total) in enumerate(zip(cert.weights, sums)):
        b, *c = (exact.Exact.of(row) @ table).fractions
        spread = [abs(v) * w for v, w in zip(c, r)]
        low = b - sum(spread, Fraction(0))
        if j < 2 * len(r):
            i, sign = divmod(j, 2)
            low += spread[i] + (c[i] if sign else -c[i]) * r[i]
        lows.append(low / total - rho / 2 * sum(w * w for w in r))
    return lows, sqrt_upper(squared_norm(c) / total**2)


def consistent(cert: Any, values: list[float], gradients: list[Any]) -> tuple[bool, str]:
    """Do the values obey the cuts? If not, the declaration or a gradient is wrong.

    Of a function that is declared strongly convex the proof uses convexity alone, but all that was
    declared is a part of the claim.
    """
    steps = cert.points[:, None] - cert.points[None]
    f, g = np.array(values), np.array(gradients)
    with np.errstate(all="ignore"):
        bent = cert.curvature / 2 * (steps**2).sum(axis=2)
        cut = f[None] + (steps * g[None]).sum(axis=2) + bent
        size = np.abs(f).max() + (np.abs(steps) * np.abs(g[None])).sum(axis=2) + np.abs(bent)
        wrong = f[:, None] < cut - ROUNDING * (1.0 + size)
    if not wrong.any():
        return True, f"{len(f)} values obey all cuts"
    i, j = (int(v[0]) for v in np.nonzero(wrong))
    return False, (
        f"the cut at {cert.points[j]} is violated at {cert.points[i]} by {cut[i, j] - f[i]:.3g}: "
        f"the declared curvature {cert.curvature:g} is wrong, or the gradient is"
    )
