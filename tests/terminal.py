"""What a program shows on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path


def shown_on_a_terminal(command: list[str], cwd: Path | None = None) -> tuple[str, str]:
    """Run with standard error on a terminal; return what was seen there, and standard output."""
    master, slave = pty.openpty()
    ran = subprocess.Popen(
        command, cwd=cwd, stdin=slave, stdout=subprocess.PIPE, stderr=slave, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other side of the terminal was closed
            break
        if not chunk:
            break
        seen += chunk
    out = ran.communicate(timeout=60)[0]
    os.close(master)
    return seen.decode(), out
