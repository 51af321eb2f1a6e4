"""What the certificate says: its checks, its points and kinks, its proof, and the files of it."""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.calculus import Explanation, Expression
from goldstein.calculus.evaluation import has_kinks
from goldstein.calculus.expression import numbered
from goldstein.certificates import Verification
from goldstein.certificates.export import NoProofFile
from goldstein.checker.arrays import Matrix
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.nodes import Max, Piecewise
from goldstein.construction.near.kinks import Kinks
from goldstein.errors import GoldsteinError
from goldstein.oracles.problem import Problem
from goldstein.reporting import blocks as part
from goldstein.reporting import pictures as drawing
from goldstein.reporting.geometry import Grid, grid_around
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure
from goldstein.storage.codec import limits_for, save_certificate


def checks(subject: Subject) -> list[Any] | None:
    """The verification, made while the page was written."""
    if subject.certificate is None:
        return None
    found = subject.verification
    blocks: list[Any] = []
    if found is None:
        words = "The function is not known here, so nothing was asked again. " + subject.remark
        blocks.append(part.Text(words, "note"))
    elif isinstance(found, str):
        blocks.append(part.Text(found, "bad"))
    else:
        said = "Every check passed" if found.ok else "Some checks failed"
        exact = subject.certificate.kind.startswith("near")
        how = "derived again in rational arithmetic" if exact else "derived again from the function"
        words = f"{said} when this page was made: everything was {how}."
        blocks.append(part.Text(words, "good" if found.ok else "bad"))
    blocks.append(part.Table.of("Margins", ("", "asked for", "claimed", "found again", "room"),
                           _margins(subject, found)))  # fmt: skip
    if isinstance(found, Verification):
        rows = [(c.name, "passed" if c.ok else "FAILED", c.message) for c in found.checks]
        blocks.append(part.Table.of("Checks", ("check", "verdict", "what was found"), rows))
    return blocks


def _margins(subject: Subject, found: Verification | str | None) -> list[tuple[str, ...]]:
    """Asked, claimed, found; and which part of what was asked for is not used up."""
    rows: list[tuple[str, ...]] = []
    for k, name in enumerate(("eps", "delta")):
        asked = math.nan if subject.asked is None else subject.asked[k]
        claimed = float(getattr(subject.certificate, name))
        again = getattr(found, name) if isinstance(found, Verification) else math.nan
        room = "unknown" if not asked > 0 else f"{100 * (1 - claimed / asked):.1f} %"
        rows.append((name, part.number(asked), part.number(claimed), part.number(again), room))
    return rows


#: Seconds for each grid of values.
_GRID_SECONDS = 0.2
_ZOOM = 1.6


def geometry(subject: Subject) -> list[Any] | None:
    """Points and gradients, exactly in two variables, else in the most telling plane."""
    certificate = subject.certificate
    if certificate is None or not np.isfinite(certificate.delta):
        return None
    if certificate.kind in ("minimum", "refutation"):
        if subject.value is None:
            return None
        words = "f along random lines through x, and how low it can be at most, as far as is shown."
        drawn = figure(drawing.draw_lines, words, certificate, subject.value, size=(6.0, 4.0))
        return [part.Figures([drawn])]
    plane, half = subject.geometry, _ZOOM * float(certificate.delta)
    levels, forbidden = None, None
    if subject.value is not None:
        levels = grid_around(plane, subject.x, subject.value, half, _GRID_SECONDS)
    if subject.problem is not None:
        forbidden = _broken(subject, subject.problem, half)
    seen = "" if plane.exact else f", projected on two directions: {' and '.join(plane.axes)}"
    lines = "" if levels is None else " and level lines of f"
    words = f"What was looked at in the ball{lines}{seen}."
    if forbidden is not None:
        words += " The shaded part violates inequalities or bounds."
    square = (4.4, 4.1)
    pictures = [figure(drawing.draw_points, words, plane, _ZOOM, levels, forbidden, size=square)]
    if len(plane.gradients) or plane.mean.any():
        words = "The gradients cancel: their hull comes as close to 0 as eps says."
        left = "the shortest vector of the hull"
        if plane.pushes:
            words = "Gradients of f and the forces of constraints and bounds cancel up to eps."
            left = "what is left of the forces"
        eps, near = float(certificate.eps), drawing.closer(plane)
        pictures.append(figure(drawing.draw_gradients, words, plane, eps, size=square))
        if near:
            words = f"The same close to 0: {left} is at most as long as eps."
            pictures.append(figure(drawing.draw_gradients, words, plane, eps, near, size=square))
    return [part.Figures(pictures), *_gradient_table(certificate)]


def _broken(subject: Subject, problem: Problem, half: float) -> Grid | None:
    box, system = problem.box, problem.constraints
    sided = ~system.equal

    def broken(y: Any) -> float:
        """How far y is beyond a limit; negative where all inequalities hold."""
        outside = float(np.abs(box.clip(y) - y).max())
        if outside > 0 or not sided.any():
            return outside  # constraints are never asked there
        values = system.values(y)
        return float(np.maximum(values - system.upper, system.lower - values)[sided].max())

    return grid_around(subject.geometry, subject.x, broken, half, _GRID_SECONDS)


def _gradient_table(certificate: Any) -> list[part.Table]:
    points, gradients = (getattr(certificate, n, None) for n in ("points", "gradients"))
    if gradients is None:
        return []
    weights = certificate.weights / max(float(certificate.weights.sum()), 1e-300)
    away = None if points is None else np.linalg.norm(points - certificate.x, axis=1)
    lengths = np.linalg.norm(gradients, axis=1)
    rows = [
        (j, part.number(float(weights[j])), part.number(float(lengths[j])),
         "at the pivot" if away is None else part.number(float(away[j])))
        for j in np.argsort(-weights).tolist()
    ]  # fmt: skip
    head = ("gradient", "weight", "length", "distance from x")
    return [part.Table.of("The gradients", head, rows, folded=True)]


#: Directions in which gradients differ by less than this part of the widest do not count.
_RANK = 1e-3


def structure(subject: Subject) -> list[Any] | None:
    """Size and rank of the bundle, and the kinks between its points where they are known."""
    gradients = getattr(subject.certificate, "gradients", None)
    if gradients is None or not len(gradients):
        return None
    rank, dim = rank_of(gradients), subject.x.size
    directions = "every direction" if rank == dim else f"{rank} direction{'' if rank == 1 else 's'}"
    rest = "" if rank == dim else f" and looks smooth in the other {dim - rank}"
    rows = [
        ("gradients in the certificate", str(len(gradients))),
        ("directions in which they differ", f"{rank} of {dim}"),
        ("what that says", f"f bends sharply in {directions} near x{rest}"),
    ]
    blocks: list[Any] = [part.Facts(rows)]
    points = getattr(subject.certificate, "points", None)
    if isinstance(subject.fun, Expression) and points is not None:
        crossed = kinks_between(subject.fun, points)
        words = "Kinks between the points of the certificate"
        blocks.append(part.Table.of(words, ("atom", "entry", "pieces seen"), crossed))
    return blocks


def rank_of(gradients: Matrix) -> int:
    """Return the dimension of what the gradients span, seen from their mean."""
    sizes = np.linalg.svd(gradients - gradients.mean(axis=0), compute_uv=False)
    longest = float(np.linalg.norm(gradients, axis=1).max(initial=0.0))
    return int(np.count_nonzero(sizes > _RANK * longest)) if longest > 0 else 0


def kinks_between(fun: Expression, points: Matrix) -> list[tuple[str, int, str]]:
    """Return the entries of atoms that are on different pieces at different points."""
    (nodes, owners), evaluation = numbered(fun), fun.evaluation
    seen = [evaluation.pieces(evaluation.tape(y)) for y in points]
    found: list[tuple[str, int, str]] = []
    for k, node in enumerate(nodes):
        if not has_kinks(node) or isinstance(node, Norm2):
            continue  # a norm has pieces without numbers
        stacked = np.array([p[k] for p in seen]) % (
            node.columns if isinstance(node, Max) else 2**31
        )
        for entry in np.flatnonzero((stacked != stacked[0]).any(axis=0)).tolist():
            which = ", ".join(str(p) for p in np.unique(stacked[:, entry]).tolist())
            found.append((owners[k].name, entry, which))
    return found


#: More variables than this are not examined for a page: exact arithmetic would take too long.
_MOST_VARIABLES = 2000


def pivot(subject: Subject) -> list[Any] | None:
    """Where the subgradient is taken."""
    certificate = subject.certificate
    y = getattr(certificate, "pivot", None)
    if y is None:
        return None
    moved = y - certificate.x
    facts = [
        ("distance of the pivot from x", part.number(float(np.linalg.norm(moved)))),
        ("variables that differ", f"{np.count_nonzero(moved)} of {y.size}"),
    ]
    if hasattr(certificate, "directions"):
        facts.append(("ways to leave it that are used", str(len(certificate.directions))))
    words = "The pivot is a point with rational coordinates near x; everything is proved there."
    blocks: list[Any] = [part.Text(words), part.Facts(facts)]
    if isinstance(subject.fun, Expression) and y.size <= _MOST_VARIABLES:
        rows = _on_kinks(subject.fun, certificate)
        blocks.append(
            part.Table.of("Exactly on a kink at the pivot", ("atom", "row", "kink"), rows)
        )
    return blocks


def _on_kinks(fun: Expression, certificate: Any) -> list[tuple[str, int, str]]:
    form, (_, owners), found = Kinks(fun), numbered(fun), []
    for k, entry, level in form.active(form.examine(certificate.exact_pivot)):
        node, where = form.nodes[k], f"tie {level}"
        if isinstance(node, Piecewise):
            where = f"argument = {float(node.breakpoints[level]):.6g}"
        found.append((owners[k].name, entry, where))
    return found


_FOLLOWS = (
    "Before any run: near every point there is a pivot that sees all kinks within reach, and the "
    "subgradients there differ little from gradients around the point."
)
_NOTHING_FOLLOWS = (
    "Before any run nothing follows for this function: an assumption is missing. A near "
    "certificate does not need it."
)


def proof(subject: Subject) -> list[Any] | None:
    """The tree for a function that is small enough to be explained while somebody waits."""
    fun = subject.fun
    if not isinstance(fun, Expression) or not fun.knows_kinks:
        return None
    if not fun.is_small:
        words = "The function is large; goldstein explain, or F.explain(), prints its proof tree."
        return [part.Text(words)]
    tree = fun.explain()
    return [part.Text(_FOLLOWS if tree.ok else _NOTHING_FOLLOWS), _tree(tree)]


def _tree(step: Explanation) -> part.Tree:
    numbers = ", ".join(f"{name} = {value:.6g}" for name, value in step.constants.items())
    remark = "; ".join(filter(None, (step.rule, numbers)))
    return part.Tree(step.claim, remark, step.ok, [_tree(s) for s in step.steps])


#: Bytes of a file inside the page; larger ones stay outside.
_MOST_CERTIFICATE, _MOST_PROOF = 500_000, 4_000_000

#: Coordinates of x that are written out.
_MOST_NUMBERS = 1000


def files(subject: Subject) -> list[Any] | None:
    """Downloads and commands."""
    blocks: list[Any] = []
    if subject.certificate is not None:
        blocks += _certificate_file(subject)
    x = subject.x
    if x.size <= _MOST_NUMBERS:
        blocks.append(part.Code("x", json.dumps(x.tolist())))
    return blocks or None


def _certificate_file(subject: Subject) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = save_certificate(subject.certificate, Path(folder) / "certificate.cert")
        content = file.read_bytes()
    verify = part.Code("verify it", subject.command or _python(subject))
    if len(content) > _MOST_CERTIFICATE:
        words = f"The certificate is a file of {len(content) / 1e6:.1f} MB, too long for this page."
        return [part.Text(words), verify]
    return [part.Download("certificate.cert", "application/zip", content), verify]


def self_check(subject: Subject) -> list[Any] | None:
    """A proof file that the page decides about, for functions that can be written down."""
    fun, certificate = subject.fun, subject.certificate
    exact = isinstance(fun, Expression) and fun.is_small and certificate is not None
    if not exact or isinstance(certificate, NoProofFile):
        return None
    with tempfile.TemporaryDirectory() as folder:
        limits = limits_for(certificate, subject.limits)
        try:
            content = certificate.export(Path(folder) / "proof.json", fun, **limits).read_bytes()
        except GoldsteinError as failure:
            return [part.Text(f"There is no proof file: {failure}", "note")]
    if len(content) > _MOST_PROOF:
        return None
    words = (
        "This page holds the function, the point and the evidence, and decides here, in exact "
        "arithmetic, whether they prove the claim. Believed are this page, your browser, and that "
        "this function is the one you care about. The command goldstein-check decides the same "
        "file without a browser."
    )
    return [part.Proof("proof.json", "application/json", content), part.Text(words)]


def _python(subject: Subject) -> str:
    kind = subject.certificate.kind
    function = "F" if kind.startswith("near") else "fun" if kind == "values" else "fun, jac"
    limits = "".join(f", {name}={name}" for name in subject.taken)
    return (
        "import goldstein as gs\n"
        f'print(gs.load_certificate("certificate.cert").verify({function}{limits}))'
    )
