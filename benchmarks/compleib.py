"""Plants of COMPleib (Leibfritz 2004) and static output feedbacks for them.

    python -m benchmarks.compleib [names] > benchmarks/compleib.md

The matrices stand in compleib.json. Ten plants were written down from the sources that COMPleib
names; the others are numbers of its transcription in the tests of NCAlgebra, which has nine of the
ten too, with the same numbers. What is not given there is as `Plant` has it by default. All 38 were
compared with COMPleib 1.1 itself (`COMPleib.m`, 9 March 2005): every entry of every matrix is the
same, but for the last digit of 1/sqrt(2) and its like in AC2, AC7, AC12 and HE1.

`KNOWN` are values that black-box runs of H-infinity syntheses reached. `RECALLED` are values of
HIFOO, meant to be those in Tran Dinh, Gumussoy, Michiels and Diehl (IEEE TAC 57, 2012), written
from memory: the paper was not opened. They are no citation until somebody has compared them.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import rational

from goldstein.control import Plant, synthesise
from goldstein.errors import InputError

PLANTS: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text())

KNOWN = {"AC15": 15.17, "AC6": 4.114, "AC8": 2.005, "AC17": 6.612, "REA2": 1.148}

RECALLED = {
    "AC2": 0.1115, "AC3": 4.7021, "AC4": 0.9355, "AC6": 4.1140, "AC7": 0.0651, "AC8": 2.0050,
    "AC9": 1.0048, "AC11": 3.5603, "AC12": 0.3160, "AC15": 15.2074, "AC16": 15.4969,
    "AC17": 6.6124, "HE1": 0.1540, "HE2": 4.4931, "HE5": 8.8952, "REA1": 0.8975, "REA2": 1.1881,
    "DIS1": 4.1716, "DIS2": 1.0548, "DIS3": 1.0816, "DIS4": 0.7465, "BDT1": 0.2664,
    "MFP": 31.5899, "EB1": 3.1225, "EB2": 2.0201, "PSM": 0.9202, "NN1": 13.9782, "NN2": 2.2216,
    "NN4": 1.3627, "NN8": 2.8871, "NN9": 28.9083, "NN15": 0.1039, "NN16": 0.9557, "NN17": 11.2182,
}  # fmt: skip

#: Four starts and the accuracies are default; calls per start, and the other limit of gains.
CALLS, LARGE = 2_000, 1e6


def plant(name: str) -> Plant:
    """Return a plant by its name."""
    parts = {
        key: np.array([row.split() for row in text.split(";")], dtype=float)
        for key, text in PLANTS[name].items()
    }
    return Plant(**parts, name=name)


def said(claim: Any, *checks: bool) -> str:
    """Return what is known of a claim: the library's check and the one that shares no code."""
    return "none" if claim is None else "proved" if all(checks) else "REFUSED"


def main() -> None:
    warnings.simplefilter("ignore")
    columns = (
        "plant", "states, controls, measurements", "known", "recalled", "norm", "all starts",
        "stable", "bound", "eps, delta", "end", "largest gain", "CPU s", "norm, gains to 1e6",
    )  # fmt: skip
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for name in sys.argv[1:] or PLANTS:
        system, t = plant(name), time.process_time()
        size = f"{len(system.A)}, {system.B.shape[1]}, {len(system.C)}"
        before = f"| {name} | {size} | {KNOWN.get(name, '')} | {RECALLED.get(name, '')} |"
        try:
            d = synthesise(system, rng=0, max_calls=CALLS)
        except InputError as refused:
            print(f"{before} {refused} |" + " |" * (len(columns) - 5), flush=True)
            continue
        spent, P, Q = time.process_time() - t, d.stability, d.bound
        stable = said(P, P is not None and P.verify(system),
                      P is not None and rational.is_stable(system, P.K, P.P))  # fmt: skip
        bound = said(Q, Q is not None and Q.verify(system),
                     Q is not None and rational.is_bounded(system, Q.K, Q.P, Q.gamma))  # fmt: skip
        c, end = d.certificate, d.result.status.name
        limited = c is not None and c.kind == "kkt"
        stationary = "none" if c is None else f"{c.eps:.1e}, {c.delta:.1e}{' KKT' * limited}"
        further = ""
        if limited or end == "STOPPED":
            more = synthesise(system, rng=0, max_calls=CALLS, largest=LARGE)
            further = f"{more.norm:.5g}"
        print(
            f"{before} {d.norm:.5g} | {', '.join(f'{v:.4g}' for v in d.norms)} | {stable} | "
            f"{bound} | {stationary} | {end} | {np.abs(d.K).max():.3g} | {spent:.1f} | {further} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
