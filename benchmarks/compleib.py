"""Plants of COMPleib (Leibfritz 2004) and static output feedbacks for them.

    python -m benchmarks.compleib [names] > benchmarks/compleib.md

The matrices stand in compleib.json. Ten plants were written down from the sources that COMPleib
names; the others are numbers of its transcription in the tests of NCAlgebra, which has nine of the
ten too, with the same numbers. What is not given there is as `Plant` has it by default. All 38 were
compared with COMPleib 1.1 itself (`COMPleib.m`, 9 March 2005): every entry of every matrix is the
same, but for the last digit of 1/sqrt(2) and its like in AC2, AC7, AC12 and HE1.

`HIFOO` are norms that HIFOO 3.501 reaches, run by us: defaults (three random starts), two runs with
other seeds, the better one, with HANSO 2.0 in GNU Octave 7.3 (norms by SLICOT); then the largest
entry of its K. `PUBLISHED` stand in the comments of figure3_table1_code.m, the program of Table 1
of Guo, Keivan, Dullerud, Seiler and Hu, "Complexity of derivative-free policy optimization for
structured H-infinity control" (NeurIPS 2023), github.com/xi1ngang/Hinf-structured-output-Feedback:
HIFOO, then hinfstruct. `KNOWN` are values of black-box runs. `RECALLED` are values of HIFOO, meant
to be those in Tran Dinh, Gumussoy, Michiels and Diehl (IEEE TAC 57, 2012), written from memory: no
table of that paper or of others could be had. They are no citation.
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

HIFOO = {
    "AC2": (0.111489, 1.83), "AC3": (3.49677, 54.1), "AC4": (0.935467, 0.3),
    "AC6": (4.11396, 3.14), "AC7": (0.0650907, 2.03), "AC8": (2.00501, 1.48),
    "AC9": (1.00443, 30.1), "AC11": (2.93297, 23.8), "AC12": (0.31819, 30.3),
    "AC15": (15.1687, 97.2), "AC16": (15.3535, 19500.0), "AC17": (6.61243, 4.32),
    "HE1": (0.153964, 478.0), "HE2": (4.19717, 40400.0), "HE3": (0.807649, 4.99),
    "HE5": (8.89516, 17.5), "REA1": (0.898093, 41.5), "REA2": (1.15097, 12.3),
    "DIS1": (4.19439, 63.1), "DIS2": (1.05477, 5.2), "DIS3": (1.06392, 568.0),
    "DIS4": (0.741023, 492.0), "BDT1": (0.266248, 15.2), "MFP": (31.5899, 1.24),
    "EB1": (3.12253, 0.339), "EB2": (2.0201, 0.825), "PSM": (0.920243, 2.57),
    "NN1": (13.8742, 102000.0), "NN2": (2.22158, 1.27), "NN4": (1.36283, 21.2),
    "NN5": (266.544, 37.5), "NN8": (2.89375, 37400.0), "NN9": (28.9383, 160.0),
    "NN13": (14.0579, 13.5), "NN14": (17.4757, 8.07), "NN15": (0.1015, 34.9),
    "NN16": (0.955691, 0.0558), "NN17": (11.2182, 13.5),
}  # fmt: skip

PUBLISHED = {"AC15": "15.2919, 15.2"}

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
        "plant", "states, controls, measurements", "published", "known", "recalled",
        "HIFOO, run here", "its gain", "norm", "all starts", "stable", "bound", "eps, delta", "end",
        "largest gain", "CPU s", "norm, gains to 1e6",
    )  # fmt: skip
    print("| " + " | ".join(columns) + " |")
    print("|---" * len(columns) + "|")
    for name in sys.argv[1:] or PLANTS:
        system, t = plant(name), time.process_time()
        size = f"{len(system.A)}, {system.B.shape[1]}, {len(system.C)}"
        sources = [PUBLISHED.get(name, ""), KNOWN.get(name, ""), RECALLED.get(name, "")]
        peer = "{:.6g} | {:.3g}".format(*HIFOO[name])
        before = f"| {name} | {size} | {' | '.join(map(str, sources))} | {peer} |"
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
