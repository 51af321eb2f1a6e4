"""The page that lists every problem, generated from the definitions."""

from __future__ import annotations

from goldstein.problems.registry import DEFINITIONS, AnyDimension, Definition

_HEADER = """\
# Test problems

Every function below is `goldstein.problems.get(name)`; scalable ones take `d`. This page is
written by `python -m goldstein.problems > docs/problems.md`.

A best value is *exact* (a proved minimum), from the *literature* (refined to full precision where
our solves agree), *planted* (the value at the solution the data were made from) or *best-found*
(our own solves).
"""


def table() -> str:
    """Return the page docs/problems.md: one table of all problems per family.

    Examples
    --------
    >>> from goldstein import problems
    >>> problems.table().splitlines()[0]
    '# Test problems'
    """
    families: dict[str, list[Definition]] = {}
    for definition in DEFINITIONS.values():
        families.setdefault(definition.family, []).append(definition)
    return _HEADER + "".join(_section(name, members) for name, members in families.items())


def _section(family: str, members: list[Definition]) -> str:
    lines = [
        f"\n## {family}\n",
        "| name | dimension | f(x) | best value | remarks | source |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{m.name}` | {_dimension(m)} | `{_cell(m.formula)}` | {_best(m)} "
        f"| {_cell(_remarks(m))} | {_cell(m.citation)} |"
        for m in members
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _dimension(definition: Definition) -> str:
    if isinstance(definition.dims, AnyDimension):
        return f"{definition.dims}; default {definition.defaults['d']}"
    return str(definition.dims)


def _best(definition: Definition) -> str:
    best = definition.best
    if callable(best):
        best = best(definition.defaults["d"])
    elif best is None:
        # Only a built instance knows its planted value.
        best = definition.build(None, {}).best_value
    return "none" if best is None else f"{best:.10g} ({definition.kind})"


def _remarks(definition: Definition) -> str:
    flags = [
        "convex" if definition.convex else "nonconvex",
        *(["smooth"] if definition.smooth else []),
        *([] if definition.bounded else ["unbounded below"]),
        *([] if definition.locally_lipschitz else ["not locally Lipschitz"]),
        *([definition.note] if definition.note else []),
    ]
    return "; ".join(flags)
