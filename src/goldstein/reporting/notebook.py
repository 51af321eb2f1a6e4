"""What a notebook shows of results, certificates and curves: small tables, without any package."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from goldstein.reporting.subject import claim_of, trust_of
from goldstein.result import History, Result, shown


def html_of(thing: Any) -> str:
    """Return one object as HTML; whatever text is in it stays text."""
    if isinstance(thing, Result):
        return _result(thing)
    if isinstance(thing, History):
        return _history(thing)
    if hasattr(thing, "history"):
        return _observations(thing.history)
    if hasattr(thing, "certificates"):
        pairs = [(f"{delta:.3g}", f"{eps:.3g}") for delta, eps in zip(thing.deltas, thing.eps)]
        return _table("stationarity curve", pairs, head=("delta", "eps"))
    if not hasattr(thing, "label"):
        return f"<pre>{escape(repr(thing))}</pre>"
    return _table(type(thing).__name__, _certificate_rows(thing))


def _result(result: Result) -> str:
    rows = [
        ("status", f"{result.status.name}: {result.message}"),
        ("f(x)", f"{result.fun:.12g}"),
        ("x", shown(result.x)),
        *([] if result.violation is None else [("violation", f"{result.violation:.3g}")]),
        ("calls", f"{result.nfev} values + {result.ngev} gradients, {result.nit} steps"),
        ("run", f"{result.time:.3g} s, method {result.method}, seed {result.seed}"),
    ]
    proved = _certificate_rows(result.certificate) if result.certificate is not None else []
    title = "goldstein: verified" if result.success else "goldstein: NOT verified"
    return _table(title, [*rows, *proved])


def _history(history: History) -> str:
    """First and last entries."""
    columns = history.as_arrays()
    rows = list(zip(*(column.tolist() for column in columns.values())))
    shown = [*rows[:5], *rows[max(5, len(rows) - 5) :]]
    return _table(
        f"course of the run: {len(rows)} entries, the first and last of them",
        [[f"{value:.6g}" for value in row] for row in shown],
        head=list(columns),
    )


def _observations(seen: Sequence[Any]) -> str:
    """What a monitor saw last."""
    rows = [(str(o.epoch), f"{o.loss:.4g}", f"{o.eps:.3g}", f"{o.delta:.3g}") for o in seen[-10:]]
    title = f"training: {len(seen)} looks, the last of them"
    return _table(title, rows, head=("epoch", "loss", "eps", "delta"))


def _certificate_rows(certificate: Any) -> list[tuple[str, str]]:
    return [
        ("proved", claim_of(certificate)),
        ("label", f"{certificate.label}: {trust_of(certificate)}"),
    ]


def _table(title: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    left = "text-align: left"
    titles = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = [f"<tr>{titles}</tr>"] if head else []
    for first, *rest in rows:
        kind = "td" if head else 'th scope="row"'
        cells = [f'<{kind} style="{left}">{escape(first)}</{kind.split()[0]}>']
        cells += [f'<td style="{left}">{escape(cell)}</td>' for cell in rest]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><caption>{escape(title)}</caption><tbody>{''.join(lines)}</tbody></table>"
