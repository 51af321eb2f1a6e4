"""`goldstein solve PROBLEM --eps E --delta D`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from goldstein.api import minimize
from goldstein.api.certify import suggest_target
from goldstein.cli import arguments, folder
from goldstein.cli.folder import INTERRUPTED, NOT_CERTIFIED, print_json, say, table, vector
from goldstein.cli.problem import choose, read_vector
from goldstein.errors import InputError
from goldstein.result import Result, Status, minimality
from goldstein.storage import records
from goldstein.storage.records import result_facts


def solve(
    ctx: typer.Context,
    problem: arguments.Problem,
    eps: Annotated[
        float | None, typer.Option(help="Wanted bound on the combination of gradients.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Radius of the ball the gradients come from.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, bundle, pingd, ...", autocompletion=arguments.complete_method)
    ] = "auto",
    stationarity: arguments.Stationarity = "goldstein",
    seed: arguments.Seed = 0,
    d: arguments.Size = None,
    x0: Annotated[str | None, typer.Option(help="Start: 1,2,3 or a file.")] = None,
    max_calls: arguments.MaxCalls = None,
    max_time: Annotated[float | None, typer.Option(help="Limit in seconds.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run; a new one.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Follow the run in a browser on this machine.")
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Minimise a function and certify the answer."""
    chosen = choose(problem, d, None if x0 is None else read_vector(x0, "--x0"))
    start = chosen.start(problem, "--x0")
    if eps is None or delta is None:
        target = suggest_target(chosen.oracle, start, rng=seed)
        raise InputError(
            f"--eps and --delta are the question: how small a combination of gradients, from how "
            f"near. A start, from the slopes at x0: --eps {target.eps:.3g} "
            f"--delta {target.delta:.3g}; goldstein.suggest_target says why."
        )
    checkpoint = folder.prepare(out, resume=resume, force=force)
    view = _live_view(ctx, problem, eps, delta, method) if live else None
    try:
        kind: Any = stationarity  # checked by minimize
        result = minimize(
            chosen.oracle, start, eps=eps, delta=delta, method=method, stationarity=kind, rng=seed,
            max_calls=max_calls, max_time=max_time, checkpoint=checkpoint, **chosen.limits,
            progress=not as_json if view is None else view.watch,
        )  # fmt: skip
    except KeyboardInterrupt:
        _tell(_ways_on(ctx, out))
        raise
    request = {"problem": problem, "eps": eps, "delta": delta, "d": d, "stationarity": stationarity}
    if as_json:
        print_json({"request": request, **result_facts(result)})
    else:
        _show(problem, chosen.found, result)
    # Only now: whatever happens to the folder, the answer has been told.
    if out is not None:
        folder.save(out, result, request)
    if not as_json:
        ways = _ways_on(ctx, out, result)
        if result.status is Status.WRONG_GRADIENT:
            ways = [f"look at it:  {_shell('check', problem)}"]
        for line in [*_checks(problem, result, out), *ways]:
            say(line)
    if view is not None:  # after the answer: checks and pictures ask the function again
        stopped = result.status is Status.STOPPED
        remark = "The run was stopped." if stopped else ""
        view.finish(folder.subject_of(result, request, None if stopped else chosen, remark))
    if result.status is Status.STOPPED:  # we pass no callback: this was Ctrl-C
        if as_json:
            _tell(_ways_on(ctx, out, result))
        raise typer.Exit(INTERRUPTED)
    if not result.success:
        raise typer.Exit(NOT_CERTIFIED)


def _live_view(ctx: typer.Context, problem: str, eps: float, delta: float, method: str) -> Any:
    """A page about the run, until the command has ended."""
    from goldstein.reporting.live import Live

    view = ctx.with_resource(Live(problem, eps, delta, method))
    _tell([f"live view:   {view.url}"])
    return view


def _show(problem: str, found: str, result: Result) -> None:
    rows: list[tuple[str, Any]] = [
        ("status", f"{result.status.name}: {result.message}"),
        ("f(x)", f"{result.fun:.12g}"),
        ("x", vector(result.x)),
        ("certificate", result.certificate.summary() if result.certificate is not None else None),
        ("minimum", minimality(result.certificate)),
        *([] if result.violation is None else [("violation", f"{result.violation:.3g}")]),
        ("calls", f"{result.nfev} values + {result.ngev} gradients"),
        ("steps", f"{result.nit} in {result.time:.3g} s"),
        ("method", f"{result.method}, seed {result.seed}"),
    ]
    if found:
        rows.insert(0, ("function", found))
    table(rows, problem)


def _checks(problem: str, result: Result, out: Path | None) -> list[str]:
    """Where the run is, and the command that exits with 0 exactly when this one does."""
    if out is None:
        return []
    if result.certificate is None:
        return [f"saved:       {out} ({records.RESULT}, {records.HISTORY})"]
    names = ", ".join((records.RESULT, records.CERTIFICATE, records.HISTORY))
    # The request that was not met is in the folder.
    whole = [str(out / records.CERTIFICATE if result.success else out), problem]
    return [f"saved:       {out} ({names})", f"check it:    {_shell('verify', *whole)}"]


def _ways_on(ctx: typer.Context, out: Path | None, result: Result | None = None) -> list[str]:
    """How to continue a run that a limit or Ctrl-C has cut short."""
    status = Status.STOPPED if result is None else result.status
    if status not in (Status.OUT_OF_CALLS, Status.OUT_OF_TIME, Status.STOPPED):
        return []
    if out is None:
        return ["nothing kept: with --out DIR a run is kept, and --resume continues it"]
    more = {}
    if result is not None and status is Status.OUT_OF_CALLS:
        more["max_calls"] = 2 * (result.nfev + result.ngev)
    return [
        f"kept:        {out / folder.CHECKPOINT}",
        f"continue it: {_shell('solve', *_repeated(ctx, more))}",
    ]


def _tell(lines: list[str]) -> None:
    """What is not part of the answer."""
    sys.stderr.writelines(line + "\n" for line in lines)


def _repeated(ctx: typer.Context, changes: dict[str, Any]) -> list[str]:
    """The arguments of this command once more, with `--resume`."""
    values = {**ctx.params, **changes, "resume": True, "force": False, "show_traceback": False}
    words: list[str] = []
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = values.get(name)
        if value is None or value is False or (value == parameter.default and name != "problem"):
            continue
        option = parameter.opts[0] if parameter.opts[0].startswith("-") else None
        words += [option] if option else []
        words += [] if value is True else [str(value)]
    return words


def _shell(command: str, *words: str) -> str:
    return f"goldstein {command} {shlex.join(words)}"
