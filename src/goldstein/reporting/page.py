"""From a subject to HTML. What is not ours is escaped; scripts are ours, or do not run."""

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import goldstein
from goldstein.errors import InputError
from goldstein.extras import missing_extra
from goldstein.oracles import Oracle, as_oracle
from goldstein.reporting.blocks import number
from goldstein.reporting.sections import sections_of
from goldstein.reporting.subject import Subject, claim_of, shortfall_of, trust_of
from goldstein.result import Result, minimality
from goldstein.storage.files import replacing


def page(subject: Subject, live: str = "") -> str:
    """Return the whole page; `live` is the address where a running page asks for news."""
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("page.html").render(
        head=_head(subject), sections=sections_of(subject), live=live,
        style=_ours(_resource("style.css")), script=_ours(script), script_hash=f"sha256-{digest}",
        version=goldstein.__version__,
    )  # fmt: skip


def body(subject: Subject) -> str:
    """Return what changes while a run goes on."""
    template = _environment().get_template("body.html")
    return template.render(head=_head(subject), sections=sections_of(subject))


def _head(subject: Subject) -> dict[str, Any]:
    """What stands at the top."""
    result, certificate = subject.result, subject.certificate
    told = f"{result.nfev} values, {result.ngev} gradients"
    facts = [
        ("f(x)", number(result.fun, 10)),
        ("variables", str(subject.x.size)),
        ("calls", str(subject.calls) if subject.running else told),
        ("steps", str(result.nit)),
        ("time", f"{result.time:.3g} s"),
        ("method", result.method if subject.running else f"{result.method}, seed {result.seed}"),
    ]
    if not subject.running:
        facts.append(("minimum", minimality(certificate)))
    if subject.asked is not None:
        facts.insert(1, ("asked for", f"eps {number(subject.asked[0])}, delta "
                                      f"{number(subject.asked[1])}"))  # fmt: skip
    if subject.running:
        claim = "Nothing is proved before the run ends."
        empty = dict.fromkeys(("tone", "label", "shortfall", "trust", "remark"), "")
        facts = facts if len(subject.history) else []
        known = {"title": subject.title, "verdict": "Running", "claim": claim, "facts": facts}
        return {**empty, **known}
    claim, shortfall, label, trust = "Nothing was proved about this point.", "", "", ""
    if certificate is not None:
        how = "Estimated" if certificate.label == "estimated" else "Proved"
        claim = f"{how}: {claim_of(certificate)}."
        shortfall, label, trust = (
            shortfall_of(certificate), certificate.label, trust_of(certificate),
        )  # fmt: skip
    found = subject.verification
    contradicted = isinstance(found, str) or (found is not None and not found.ok)
    good = result.success and not contradicted
    verdict = "Stationary, as asked for" if result.success else "Not proved as asked for"
    if contradicted:
        verdict = "The certificate does not hold for this function"
        claim = f"Claimed, and not confirmed: {claim.partition(': ')[2]}"
    words = "" if result.success else f"{result.status.name}: {result.message}."
    return {
        "title": subject.title, "verdict": verdict, "tone": "good" if good else "bad",
        "label": label, "claim": claim, "trust": trust, "remark": subject.remark, "facts": facts,
        "shortfall": ". ".join(part for part in (shortfall, words) if part),
    }  # fmt: skip


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError as missing:
        if missing.name not in ("jinja2", "markupsafe"):
            raise
        raise missing_extra("a report", "Jinja2", "report") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("goldstein.reporting"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # The script that decides proof files, as it stands in the page made for that alone.
    checker = _resource("check.html").split('<script id="checker">')[1].split("</script>")[0]
    environment.globals["checker"] = _ours(checker)
    return environment


def _ours(text: str) -> Any:
    """Text of this package, which is not escaped."""
    from markupsafe import Markup

    return Markup(text)


@cache
def _resource(name: str) -> str:
    return files("goldstein.reporting").joinpath("templates", name).read_text("utf-8")


_NO_FUNCTION = "Pass the function to report() for checks, level lines and the curve."


def write_report(
    result: Any,
    path: str | Path,
    fun: Any = None,
    jac: Callable[..., Any] | bool | None = None,
    limits: dict[str, Any] | None = None,
    title: str = "",
) -> Path:
    """Write the page of a result, or of many starts (`best`, `points`, `failures`)."""
    many = result if hasattr(result, "best") and hasattr(result, "points") else None
    best: Result = result if many is None else result.best
    if best is None:
        raise InputError("no run has ended with a result: there is nothing to report.")
    asked = best.asked
    oracle, known = (None, {}) if asked is None else (asked.fun, asked.limits)
    if fun is not None:
        oracle, known = as_oracle(fun, jac, (), getattr(best.certificate, "layout", [0])), {}
    subject = Subject(
        best, title or _title(best, oracle), oracle, limits or known,
        remark="" if oracle is not None else _NO_FUNCTION, starts=many,
    )  # fmt: skip
    return write_page(subject, path)


def write_page(subject: Subject, path: str | Path) -> Path:
    """Write the page of a subject, all or nothing; the suffix .html is added if there is none."""
    target = Path(path)
    if not target.suffix:
        target = target.with_suffix(".html")
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is no folder; make it, or name another one.")
    html = page(subject)
    with replacing(target) as file:
        file.write(html.encode())
    return target


def _title(result: Result, oracle: Oracle | None) -> str:
    recorded = getattr(result.certificate, "meta", {}).get("function")
    name = oracle.name if oracle is not None else recorded
    return f"A run on {name}" if isinstance(name, str) and name != "<lambda>" else "A run"
