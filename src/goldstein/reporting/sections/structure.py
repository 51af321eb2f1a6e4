"""Which pieces meet near x."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.calculus import Expression
from goldstein.calculus.evaluation import has_kinks
from goldstein.calculus.expression import numbered
from goldstein.checker.arrays import Matrix
from goldstein.checker.nodes import Max, Norm2
from goldstein.reporting.blocks import Facts, Section, Table
from goldstein.reporting.subject import Subject

#: Directions in which gradients differ by less than this part of the widest do not count.
_RANK = 1e-3


def structure(subject: Subject) -> Section | None:
    """Size and rank of the bundle, and the kinks between its points where they are known."""
    gradients = getattr(subject.certificate, "gradients", None)
    if gradients is None or not len(gradients):
        return None
    rank, dim = rank_of(gradients), subject.x.size
    rows = [
        ("gradients in the certificate", str(len(gradients))),
        ("directions in which they differ", f"{rank} of {dim}"),
        (
            "what that says",
            f"f bends sharply in {rank} direction{'' if rank == 1 else 's'} near x and looks "
            f"smooth in the other {dim - rank}",
        ),
    ]
    blocks: list[Any] = [Facts(rows)]
    points = getattr(subject.certificate, "points", None)
    if isinstance(subject.fun, Expression) and points is not None:
        crossed = kinks_between(subject.fun, points)
        words = "Kinks between the points of the certificate"
        blocks.append(Table.of(words, ("atom", "entry", "pieces seen"), crossed))
    return Section("structure", "Which pieces meet near x", blocks)


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
