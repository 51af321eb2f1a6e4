"""Every method of the comparison under one signature."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from benchmarks.answer import Answer
from benchmarks.peers import scipy_methods, shared_library
from benchmarks.peers.remote import PeerProcess
from benchmarks.recorder import Recorder
from benchmarks.references import gradient_sampling, ingd, ntdescent

import goldstein as gs

Solve = Callable[[Recorder, np.ndarray, float, float, int], Answer]
Reference = Callable[[Recorder, np.ndarray, float, float, np.random.Generator], Answer]

PEER_PROCESS = PeerProcess()


@dataclass(frozen=True)
class Method:
    """A name, a group and a function of (oracle, x0, eps, delta, seed).

    `ignores_level` says that eps and delta change nothing, so that one run serves all levels.
    `missing` says in a sentence why the method cannot be asked on this machine, or None.
    """

    name: str
    group: Literal["ours", "reference", "peer"]
    solve: Solve
    ignores_level: bool = False
    missing: Callable[[], str | None] = lambda: None


def _ours(
    name: str, label: str = "", missing: Callable[[], str | None] = lambda: None, **options: Any
) -> Method:
    def solve(oracle: Recorder, x0: np.ndarray, eps: float, delta: float, seed: int) -> Answer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gs.PrecisionWarning)
            found = gs.minimize(
                oracle, x0, eps=eps, delta=delta, method=name, rng=seed,
                max_calls=int(oracle.max_calls), options=options or None,
            )  # fmt: skip
        return Answer(found.x, found.status.name, found.certificate)

    return Method(label or name, "ours", solve, missing=missing)


def _no_compiler() -> str | None:
    fast = importlib.util.find_spec("numba") is not None
    return None if fast else "auto-compiled is skipped: it needs the extra `fast`."


def _reference(name: str, reference: Reference) -> Method:
    def solve(oracle: Recorder, x0: np.ndarray, eps: float, delta: float, seed: int) -> Answer:
        return reference(oracle, x0, eps, delta, np.random.default_rng(seed))

    return Method(name, "reference", solve)


def _remote(name: str, *, ignores_level: bool = False) -> Method:
    return Method(name, "peer", partial(PEER_PROCESS.solve, name), ignores_level)


def _native(name: str) -> Method:
    return Method(
        name,
        "peer",
        partial(shared_library.solve, name),
        ignores_level=True,
        missing=partial(shared_library.missing, name),
    )


METHODS = {
    method.name: method
    for method in (
        _ours("auto"),
        _ours("auto", "auto-compiled", _no_compiler, compiled=True),
        _ours("bundle"),
        _ours("pingd"),
        _reference("ingd", ingd.solve),
        _reference("gradient-sampling", gradient_sampling.solve),
        _reference("ntdescent", ntdescent.solve),
        Method("scipy-bfgs", "peer", scipy_methods.bfgs),
        Method("scipy-lbfgsb", "peer", scipy_methods.lbfgsb),
        _native("nonopt"),
        _native("lmbm"),
        _remote("nlopt-lbfgs", ignores_level=True),
        _remote("torch-adam", ignores_level=True),
        _remote("pygranso", ignores_level=True),
        _remote("pygranso-loose"),
    )
}
