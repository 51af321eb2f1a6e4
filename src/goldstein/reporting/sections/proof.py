"""Why near stationarity follows: the proof tree of the calculus."""

from __future__ import annotations

from goldstein.calculus import Explanation, Expression
from goldstein.reporting.blocks import Section, Text, Tree
from goldstein.reporting.subject import Subject


def proof(subject: Subject) -> Section | None:
    """The tree for a function that is small enough to be explained while somebody waits."""
    fun = subject.fun
    if not isinstance(fun, Expression) or not fun.knows_kinks:
        return None
    if not fun.is_small:
        words = "The function is large; goldstein explain, or F.explain(), prints its proof tree."
        return Section("proof", "Why", [Text(words)])
    tree = fun.explain()
    if tree.ok:
        words = (
            "Before any run: near every point there is a pivot that sees all kinks within reach, "
            "and the subgradients there differ little from gradients around the point."
        )
    else:
        words = (
            "Before any run nothing follows for this function: an assumption is missing. A near "
            "certificate does not need it."
        )
    return Section("proof", "Why", [Text(words), _tree(tree)])


def _tree(step: Explanation) -> Tree:
    numbers = ", ".join(f"{name} = {value:.6g}" for name, value in step.constants.items())
    remark = "; ".join(part for part in (step.rule, numbers) if part)
    return Tree(step.claim, remark, step.ok, [_tree(s) for s in step.steps])
