"""`goldstein warm-up`."""

from typing import Annotated

import typer

from goldstein.cli.folder import say
from goldstein.solvers import compiled


def warm_up(
    off: Annotated[bool, typer.Option("--off", help="Run `auto` interpreted again.")] = False,
) -> None:
    """Compile the search for this machine; runs of `auto` are compiled from then on.

    Needs the extra `fast`, and is needed again after an upgrade.
    """
    state = "compiled" if compiled.warm_up(automatic=not off) else "interpreted"
    say(f"method auto is {state} from now on")
