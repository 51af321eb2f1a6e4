"""The command line: `goldstein solve | certify | verify | explain | bench | problems`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without the extra packages say how to get them."""
    try:
        from goldstein.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.split(".")[0] == "goldstein":
            raise
        sys.stderr.write(
            f"error: the command line needs {missing.name}; "
            "install it with: pip install 'goldstein[cli]'\n"
        )
        raise SystemExit(2) from None
    app(prog_name="goldstein")
