"""The command line: `goldstein solve | certify | verify | check | explain | bench | problems`."""

import sys

from goldstein.cli.streams import whole_process
from goldstein.extras import install_hint


def main() -> None:
    """Run the command line; without the extra packages say how to get them."""
    try:
        from goldstein.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.split(".")[0] == "goldstein":
            raise
        sys.stderr.write(f"error: the command line needs {missing.name}; {install_hint('cli')}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:  # the packages take a second to load
        sys.stderr.write("interrupted\n")
        raise SystemExit(130) from None
    with whole_process():
        app(prog_name="goldstein")
