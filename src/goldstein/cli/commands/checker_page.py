"""`goldstein checker-page -o check.html`."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from goldstein.cli.folder import say
from goldstein.storage.files import replacing


def checker_page(
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("check.html"),
) -> None:
    """Write a page that checks proof files in a browser, from disk and without a network."""
    page = files("goldstein.reporting").joinpath("templates", "check.html").read_bytes()
    with replacing(out) as file:
        file.write(page)
    say(f"{out}: open it, and drop a proof file on it")
