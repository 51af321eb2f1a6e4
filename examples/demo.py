"""The library in one minute: solve a real problem, then let another process check the answer.

    python examples/demo.py --out demo-run

The problem is in breast_cancer_svm.py. One process minimises it and saves a certificate; a second
one, which knows nothing of the first, re-derives every number of the certificate from the function.
The folder keeps result.json, certificate.cert and history.csv; a run that is cut short also keeps
its journal, checkpoint.journal, from which `--resume` continues.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PROBLEM = HERE / "breast_cancer_svm.py"
REQUEST = ["--stationarity", "near", "--eps", "1e-3", "--delta", "1e-3", "--seed", "0"]


def goldstein(*arguments: str) -> None:
    """Show a command, run it in a process of its own, and stop if it fails."""
    print(f"\n$ goldstein {shlex.join(arguments)}\n", flush=True)
    command = [sys.executable, "-m", "goldstein.cli", *arguments]
    code = subprocess.run(command, check=False).returncode
    if code:
        sys.exit(code)


def shown(path: Path) -> str:
    """The path relative to where we are, where that is shorter."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-run"), help="folder for the run")
    out = parser.parse_args().out
    problem = f"{shown(PROBLEM)}:problem"
    goldstein("solve", problem, *REQUEST, "--out", str(out), "--force")
    goldstein("verify", str(out / "certificate.cert"), problem)

    sys.path.insert(0, str(HERE))
    from breast_cancer_svm import accuracy

    w = np.array(json.loads((out / "result.json").read_text())["x"])
    print(f"\nThe classifier is right on {accuracy(w):.1%} of the patients; the run is in {out}/.")


if __name__ == "__main__":
    main()
