"""Plants of COMPleib (Leibfritz 2004), written down from its sources, and structured controllers.

    python -m benchmarks.compleib [names] > benchmarks/compleib.md

`known` is the value that black-box runs of H-infinity syntheses reach, where it is at hand; spectra
without feedback are checked in tests/control. Everything is default but the seed.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from goldstein.control import Plant, synthesise
from goldstein.errors import InputError

#: A, B, C; more matrices where they are not those of the library's default.
PLANTS: dict[str, dict[str, str]] = {
    "AC3": {
        "A": "0 0 1 0 0;0 -.154 -.0042 1.54 0;0 .249 -1 -5.2 0;.0386 -.996 -.0003 -.117 0;"
        "0 .5 0 0 -.5",
        "B": "0 0;-.744 -.032;.337 -1.12;.02 0;0 0",
        "C": "0 1 0 0 -1;0 0 1 0 0;0 0 0 1 0;1 0 0 0 0",
    },
    "AC6": {
        "A": "0 0 1 0 0 0 0;0 -.154 -.0042 1.54 0 -.744 -.032;0 .249 -1 -5.2 0 .337 -1.12;"
        ".0386 -.996 -.0003 -2.117 0 .02 0;0 .5 0 0 -4 0 0;0 0 0 0 0 -20 0;0 0 0 0 0 0 -25",
        "B": "0 0;0 0;0 0;0 0;0 0;20 0;0 25",
        "C": "0 -.154 -.0042 1.54 0 -.744 -.032;0 .249 -1 -5.2 0 .337 -1.12;1 0 0 0 0 0 0;"
        "0 0 0 0 1 0 0",
    },
    "AC11": {
        "A": "-1.341 .9933 0 -.1689 -.2518;43.223 -.8693 0 -17.251 -1.5766;"
        "1.341 .0067 0 .1689 .2518;0 0 0 -20 0;0 0 0 0 -20",
        "B": "0 0;0 0;0 0;20 0;0 20",
        "C": "0 0 1 0 0;47.76 -.268 0 -4.56 4.45;0 0 0 1 0;0 0 0 0 1",
    },
    "AC15": {
        "A": "-.037 .0123 .00055 -1;0 0 1 0;-6.37 0 -.23 .0618;1.25 0 .016 -.0457",
        "B": ".00084 .000236;0 0;.08 .804;-.0862 -.0665",
        "C": "0 1 0 0;0 0 1 0;0 0 0 1",
        "B1": "1 0 0 0;0 1 0 0;0 0 1 0;0 0 0 1",
        "C1": "1 0 0 0;0 1 0 0;0 0 1 0;0 0 0 1;0 0 0 0;0 0 0 0",
    },
    "AC17": {
        "A": "-2.98 .93 0 -.034;-.99 -.21 .035 -.0011;0 0 0 1;.39 -5.555 0 -1.89",
        "B": "-.032;0;0;-1.6",
        "C": "0 0 1 0;0 0 0 1",
    },
    "HE1": {
        "A": "-.0366 .0271 .0188 -.4555;.0482 -1.01 .0024 -4.0208;.1002 .3681 -.7070 1.42;0 0 1 0",
        "B": ".4422 .1761;3.5446 -7.5922;-5.52 4.49;0 0",
        "C": "0 1 0 0",
        "B1": "4.678e-2 0;4.572e-2 9.88e-3;4.369e-2 1.11e-3;-2.179e-2 0",
        "C1": "1.4142135623730951 0 0 0;0 .7071067811865475 0 0",
        "D12": ".7071067811865475 0;0 .7071067811865475",
    },
    "HE2": {
        "A": "-.0649 .0787 .1705 -.5616;.0386 -.939 4.2277 .0198;.1121 -.4254 -.7968 0;0 0 1 0",
        "B": "-.9454 .5313;-8.6476 -10.769;19.0824 -2.8959;0 0",
        "C": "1 0 0 0;0 0 0 1",
    },
    "NN8": {
        "A": "-.2 .1 1;-.05 0 0;0 0 -1",
        "B": "0 1;0 .7;1 0",
        "C": "1 0 0;0 1 0",
    },
    "REA1": {
        "A": "1.38 -.2077 6.715 -5.676;-.5814 -4.29 0 .675;1.067 4.273 -6.654 5.893;"
        ".048 4.273 1.343 -2.104",
        "B": "0 0;5.679 0;1.136 -3.146;1.136 0",
        "C": "1 0 1 -1;0 1 0 0;0 0 1 -1",
    },
    "REA2": {
        "A": "1.4 -.208 6.715 -5.676;-.581 -4.29 0 .675;1.067 4.273 -6.654 5.893;"
        ".048 4.273 1.343 -2.104",
        "B": "0 0;5.679 0;1.136 -3.146;1.136 0",
        "C": "1 0 1 -1;0 1 0 0",
    },
}

KNOWN = {"AC15": 15.17, "AC6": 4.114, "AC17": 6.612, "REA2": 1.148}


def plant(name: str) -> Plant:
    """Return a plant by its name."""
    parts = {
        key: np.array([row.split() for row in text.split(";")], dtype=float)
        for key, text in PLANTS[name].items()
    }
    return Plant(**parts, name=name)


def main() -> None:
    warnings.simplefilter("ignore")
    print("# Static output feedback for plants of COMPleib\n\nDefault: four "
          "starts, eps = delta = 1e-4. `stable` and `bound` are proofs in rationals, at norm "
          "(1 + 1e-6); `eps, delta` what the Goldstein certificate states of K.\n")  # fmt: skip
    print("| plant | states, controls, measurements | known | norm | all starts | stable | bound "
          "| eps, delta | largest gain | CPU s |")  # fmt: skip
    print("|---" * 10 + "|")
    for name in sys.argv[1:] or PLANTS:
        system, t = plant(name), time.process_time()
        size = f"{len(system.A)}, {system.B.shape[1]}, {len(system.C)}"
        try:
            d = synthesise(system, rng=0, max_calls=2_000)
        except InputError as refused:
            print(f"| {name} | {size} | {KNOWN.get(name, '')} | {refused} |" + " |" * 6)
            continue
        spent = time.process_time() - t
        claims = [c is not None and c.verify(d.plant) for c in (d.stability, d.bound)]
        words = ["proved" if c else "no" for c in claims]
        c = d.certificate
        stationary = "none" if c is None else f"{c.eps:.1e}, {c.delta:.1e}"
        ends = ", ".join(f"{v:.4g}" for v in d.norms)
        print(
            f"| {name} | {size} | {KNOWN.get(name, '')} | {d.norm:.5g} | {ends} | {words[0]} | "
            f"{words[1]} | {stationary} | "
            f"{np.abs(d.K).max():.3g} | {spent:.1f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
