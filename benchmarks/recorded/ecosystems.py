"""The recorded runs that other packages take part in, and what stands at the surface."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import pickle
import re
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.recorded.families import Tasks, checked, family, limited, near_limited
from benchmarks.recorded.fields import (
    Fields,
    digest,
    of_certificate,
    of_error,
    of_result,
    of_scipy,
    of_verification,
    plain,
)
from benchmarks.recorded.functions import (
    EXPRESSIONS,
    VALLEY,
    VALLEY_START,
    classes,
    regression,
    squares,
    valley,
    valley_slope,
)
from benchmarks.shape import PUBLIC

import goldstein as gs

#: What could be read from the package before anything was moved: listed or not, it goes on working.
SPELLINGS = """
AdamO2NC BundlePINGD CertificateFileError Check CheckpointError CheckpointWarning
ConfidenceBound Expression FiniteSum FunctionOracle GoldsteinCertificate GoldsteinError
GradientCheck History InputError InputTypeError KKTCertificate KinkError MissingExtraError
NearCertificate NearKKTCertificate NotCertifiableError NotDeterministicError O2NC Oracle
OracleError OuterLipschitz PINGD PSINGD PartiallySeparable PlusCertificate PrecisionWarning
Question Result SampleStream Search Solver StationarityCurve Status Target Values
ValuesCertificate ValuesKKTCertificate Variable Verification Violation WrongGradientError
ZerothOrder __version__ abs calculus capped_l1 certify certify_result check_gradient
clarke_distance concatenate confidence_bound confidence_of eps_insensitive gated_relu
goldstein_target hard_tanh hinge huber leaky_relu linear load_certificate log_sum logistic max
max_affine maximum mcp min minimize minimum models norm1 norm2 pinball problems prox
pseudo_huber ramp relu relu6 row_max scad smooth_function soft_threshold softmax_cross_entropy
softplus span_test square squared_hinge stack stationarity_curve suggest_target sum sum_squares
"""


@family()
def scipy_method() -> Tasks:
    for name, more in {
        "plain": {"jac": valley_slope}, "tol": {"jac": valley_slope, "tol": 1e-3},
        "bounds": {"jac": valley_slope, "bounds": [(-2.0, 0.5)] * 2},
        "constraints": {"jac": valley_slope, **limited()["valley below a corner"][3]},
        "values": {"options": {"max_calls": 2000}},
        "maxiter": {"jac": valley_slope, "options": {"maxiter": 5}},
    }.items():  # fmt: skip
        yield name, partial(_scipy, more)


def _scipy(request: dict[str, Any], seed: int) -> Fields:
    from scipy.optimize import minimize

    import goldstein.scipy

    options = {"rng": seed, **request.get("options", {})}
    res = minimize(
        valley, VALLEY_START, method=goldstein.scipy.method, **{**request, "options": options}
    )
    return of_scipy(res)


def two_valleys(x: np.ndarray) -> float:
    return float(np.abs(np.abs(x) - 1).sum() + 0.1 * x[0] + 0.03 * x[1])


def two_valleys_slope(x: np.ndarray) -> np.ndarray:
    return np.sign(np.abs(x) - 1) * np.sign(x) + [0.1, 0.03]


@family()
def many_starts() -> Tasks:
    yield "two starts", partial(_multistart, {"n_starts": 2})
    yield "folder", _in_a_folder
    yield "two starts, bounds", partial(_multistart, {"n_starts": 2, "bounds": [(-1.5, 2)] * 2})
    yield "sweep", _sweep


def _multistart(more: dict[str, Any], seed: int) -> Fields:
    from goldstein.parallel import multistart

    starts = np.random.default_rng(seed).uniform(-1.4, 1.4, (4, 2))
    found = multistart(
        two_valleys, starts, two_valleys_slope, eps=1e-3, delta=1e-3, n_jobs=1, rng=seed, **more
    )
    return {**_results(found.results), "points": [plain(point.x) for point in found.points]}


def _in_a_folder(seed: int) -> Fields:
    from goldstein.parallel import multistart

    starts = np.random.default_rng(seed).uniform(-1.4, 1.4, (4, 2))
    request = {"eps": 1e-3, "delta": 1e-3, "n_jobs": 1, "rng": seed}
    with tempfile.TemporaryDirectory() as folder:
        for count in (2, 4):
            found = multistart(
                two_valleys, starts, two_valleys_slope, n_starts=count, folder=folder, **request
            )
    return {**_results(found.results), "points": [plain(point.x) for point in found.points]}


def _sweep(seed: int) -> Fields:
    from goldstein.parallel import sweep

    def problem(weight: float) -> Any:
        return (
            lambda x: float((x - 1) @ (x - 1) / 2 + weight * np.abs(x).sum()),
            lambda x: x - 1 + weight * np.sign(x),
        )

    request = {"eps": 1e-4, "delta": 1e-4, "warm_start": True, "n_jobs": 1, "rng": seed}
    return _results(sweep(problem, [0.1, 0.5, 0.9], [3.0, 3.0], **request).results)


def _results(results: Any) -> Fields:
    return {
        f"{k}.{key}": value
        for k, res in enumerate(results)
        for key, value in of_result(res).items()
    }


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a standardised data set of scikit-learn, in part where it is large."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if name.startswith("random"):
        rows, columns = map(int, name.split()[1].split("x"))
        return classes(rows, columns)
    rows = {"breast_cancer": 150, "diabetes": 120, "iris": 150}[name]
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return StandardScaler().fit_transform(X)[:rows], y[:rows]


@family()
def estimators() -> Tasks:
    margin, classifier, regressor = "RhoMarginSVC", "ReLUNetClassifier", "ReLUNetRegressor"
    for name, kind, parameters in (
        ("breast_cancer", margin, {}),
        ("breast_cancer", margin, {"rho": 1.0, "C": 0.1, "n_init": 2}),
        ("iris", margin, {"multi_class": "ovr"}),
        ("iris", margin, {"multi_class": "native", "certificate": "goldstein"}),
        ("iris", classifier, {"width": 4, "max_calls": 1000}),
        ("iris", classifier, {"width": 4, "max_calls": 400, "solver": "o2nc"}),
        ("breast_cancer", classifier, {"width": 3, "layers": 1, "max_calls": 800}),
        ("diabetes", regressor, {"width": 4, "max_calls": 800, "certificate": "goldstein"}),
        ("diabetes", regressor, {"width": 3, "loss": "huber", "max_calls": 500}),
        ("diabetes", regressor, {"width": 3, "solver": "psingd", "max_calls": 400}),
        ("random 60x200", margin, {}),
        ("random 700x350", margin, {"certificate": "goldstein", "eps": 1e-4}),
        ("random 300x4", margin, {"C": 10.0, "rho": 0.5, "eps": 1e-8, "delta": 1e-6}),
        ("diabetes", regressor, {"width": 4, "early_stopping": True, "max_calls": 500}),
    ):
        said = ", ".join(f"{key}={value}" for key, value in parameters.items())
        yield f"{name} {kind}({said})", partial(_fit, name, kind, parameters)
    yield "chunks, RhoMarginSVC", partial(_chunked, margin, {})
    yield "chunks, ReLUNetRegressor", partial(_chunked, regressor, {"width": 3, "max_calls": 300})


def _fit(name: str, kind: str, parameters: dict[str, Any], seed: int) -> Fields:
    import goldstein.sklearn as estimators_

    X, y = data(name)
    # A near proof may take as long as the fit, by the clock: a fit with a folder has a minute.
    with tempfile.TemporaryDirectory() as folder:
        fit = getattr(estimators_, kind)(random_state=seed, checkpoint=folder, **parameters)
        fit.fit(X, y)
    found = {
        key: plain(value)
        for key, value in sorted(vars(fit).items())
        if key.endswith("_") and not key.startswith("_") and _is_data(value)
    }
    found["predictions"] = plain(np.asarray(fit.predict(X)))
    found |= of_certificate(fit.certificate_)
    if not parameters.get("early_stopping"):
        found |= checked(fit.certificate_, fit.objective(X, y))
    return found


def _chunked(kind: str, parameters: dict[str, Any], seed: int) -> Fields:
    import dask
    import dask.array

    import goldstein.sklearn as estimators_

    X, y = classes(300, 5)
    with dask.config.set(scheduler="synchronous"), tempfile.TemporaryDirectory() as folder:
        parts = dask.array.from_array(X, chunks=(100, 5))
        fit = getattr(estimators_, kind)(random_state=seed, checkpoint=folder, **parameters)
        fit.fit(parts, y)
        seen = checked(fit.certificate_, fit.objective(parts, y))
    return {"predictions": plain(fit.predict(X)), **of_certificate(fit.certificate_), **seen}


def _is_data(value: Any) -> bool:
    simple = bool | int | float | str | np.ndarray | np.number
    return isinstance(value, simple) or (
        isinstance(value, tuple) and all(isinstance(item, simple) for item in value)
    )


@cache
def _torch() -> Any:
    import torch

    torch.set_num_threads(1)
    return torch


def _network(seed: int) -> tuple[Any, Any, list[Any]]:
    torch = _torch()
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    X, y = (torch.tensor(part, dtype=torch.float32) for part in regression(48, 5))
    batches = [(X[k : k + 16], y[k : k + 16, None]) for k in range(0, 48, 16)]
    return model, torch.nn.L1Loss(), batches


@family()
def torch_models() -> Tasks:
    yield "oracle", _torch_oracle
    for kind in ("PSINGD", "O2NC", "AdamO2NC"):
        yield f"{kind}, 50 steps", partial(_torch_steps, kind)
    yield "certify", _torch_certify
    yield "resumed", _torch_resumed
    yield "watched", _torch_watched
    yield "certify, eps", partial(_torch_certify, eps=0.5)


def _torch_oracle(seed: int) -> Fields:
    torch = _torch()
    import goldstein.torch

    M = torch.tensor(regression(4, 3)[0])
    f = goldstein.torch.oracle(
        lambda p: (M - torch.outer(p["u"], p["v"])).abs().sum(),
        {"u": torch.ones(4), "v": torch.ones(3)},
    )
    res = gs.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=seed, max_calls=1500)
    return {**of_result(res), **of_verification(res.certificate, f)}


def _trained(optimizer: Any, model: Any, loss: Any, batches: Any, steps: int) -> list[float]:
    losses = []
    for step in range(steps):
        inputs, targets = batches[step % len(batches)]
        optimizer.zero_grad()
        value = loss(model(inputs), targets)
        value.backward()
        optimizer.step()
        losses.append(float(value))
    return losses


def _torch_resumed(seed: int) -> Fields:
    """Ten steps, put away, and ten more with another optimizer of the same kind."""
    import goldstein.torch

    model, loss, batches = _network(seed)
    first = goldstein.torch.AdamO2NC(model.parameters(), lr=3e-3, seed=seed)
    losses = _trained(first, model, loss, batches, 10)
    again, _, _ = _network(seed + 1)
    again.load_state_dict(model.state_dict())
    second = goldstein.torch.AdamO2NC(again.parameters(), lr=3e-3, seed=seed + 1)
    second.load_state_dict(first.state_dict())
    losses += _trained(second, again, loss, batches, 10)
    return {"losses": plain(np.array(losses)), "last": losses[-1].hex()}


def _torch_watched(seed: int) -> Fields:
    import goldstein.torch

    model, loss, batches = _network(seed)
    monitor = goldstein.torch.Monitor(
        model, loss, batches, delta=1e-2, seed=seed, share=float("inf"), clock=lambda: 0.0,
        certified=False, stopping=goldstein.torch.GoldsteinStopping(rel_eps=1e-3, patience=2),
    )  # fmt: skip
    seen = [monitor.update(epoch) for epoch in range(3)]
    return {str(k): None if one is None else one.eps.hex() for k, one in enumerate(seen)}


def _torch_steps(kind: str, seed: int) -> Fields:
    import goldstein.torch

    model, loss, batches = _network(seed)
    rate = {"AdamO2NC": 3e-3}.get(kind, 0.3)
    optimizer = getattr(goldstein.torch, kind)(model.parameters(), lr=rate, seed=seed)
    losses = _trained(optimizer, model, loss, batches, 50)
    with optimizer.at_center():
        centre = np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])
    return {"losses": plain(np.array(losses)), "last": losses[-1].hex(), "centre": plain(centre)}


def _torch_certify(seed: int, **more: Any) -> Fields:
    import goldstein.torch

    model, loss, batches = _network(seed)
    found = goldstein.torch.certify(
        model, loss, batches, delta=0.05, seed=seed, max_calls=60, **more
    )
    about = goldstein.torch.DataOracle(model, loss, batches)
    return {**of_certificate(found), **of_verification(found, about)}


@family(3)
def jax_models() -> Tasks:
    yield "oracle", _jax_oracle
    for kind in ("psingd", "o2nc", "adam_o2nc"):
        yield f"{kind}, 50 steps", partial(_jax_steps, kind)
    yield "certify", _jax_certify


def _jax_parts(seed: int) -> tuple[Any, Any, Any]:
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(seed)
    params = {
        "w": jnp.asarray(rng.normal(size=(5, 4)), jnp.float32),
        "v": jnp.asarray(rng.normal(size=4), jnp.float32),
    }
    X, y = (part.astype(np.float32) for part in regression(48, 5))
    batches = [{"x": X[k : k + 16], "y": y[k : k + 16]} for k in range(0, 48, 16)]

    def loss(p: Any, batch: Any) -> Any:
        return jnp.abs(jax.nn.relu(batch["x"] @ p["w"]) @ p["v"] - batch["y"]).mean()

    return loss, params, batches


def _jax_oracle(seed: int) -> Fields:
    import goldstein.jax

    loss, params, batches = _jax_parts(0)
    f = goldstein.jax.oracle(lambda p: loss(p, batches[0]), params)
    res = gs.minimize(f, f.start, eps=1e-2, delta=1e-2, rng=seed, max_calls=300)
    return {**of_result(res), **of_verification(res.certificate, f)}


def _jax_steps(kind: str, seed: int) -> Fields:
    import jax
    import optax

    import goldstein.jax

    loss, params, batches = _jax_parts(seed)
    rate = 3e-3 if kind == "adam_o2nc" else 0.3
    optimizer = getattr(goldstein.jax, kind)(optax.linear_schedule(rate, 0.0, 100), seed=seed)
    state = optimizer.init(params)

    @jax.jit
    def step(params: Any, state: Any, batch: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(params, batch)
        updates, state = optimizer.update(slope, state, params)
        return optax.apply_updates(params, updates), state, value

    losses = []
    for k in range(50):
        params, state, value = step(params, state, batches[k % len(batches)])
        losses.append(float(value))
    centre = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(state.center(params))])
    return {"losses": plain(np.array(losses)), "last": losses[-1].hex(), "centre": plain(centre)}


def _jax_certify(seed: int) -> Fields:
    import goldstein.jax

    loss, params, batches = _jax_parts(0)
    found = goldstein.jax.certify(loss, params, batches, delta=0.05, seed=seed, max_calls=40)
    about = goldstein.jax.DataOracle(loss, params, batches)
    return {**of_certificate(found), **of_verification(found, about)}


@family(2)
def files() -> Tasks:
    """Certificates saved, read again and exported."""
    for name in ("valley", "largest affine 6x3", "hinges 40x4", "deviations + l1"):
        for kind in ("goldstein", "near"):
            yield f"{name}, {kind}", partial(_filed, name, kind)
    yield "of all kinds", _kinds


def _kinds(seed: int) -> Fields:
    """Certificates of all kinds: saved, read again, pickled, and made smaller."""
    target = {"eps": 1e-3, "delta": 1e-3, "rng": seed}
    circle = limited()["valley below a corner"][3]
    (f, grad), (loss, slope) = VALLEY, squares(30, 6)
    blind = {"eps": 0.3, "delta": 1e-2, "rng": seed, "max_calls": 8000}
    F, x0, bounded = near_limited()["hinges, fair"]
    start = np.linspace(0.0, 1.0, 6)
    made = {
        "goldstein": gs.minimize(f, VALLEY_START, grad, **target),
        "kkt": gs.minimize(f, VALLEY_START, grad, **circle, **target),
        "plus": gs.minimize(loss, start, slope, plus=gs.prox.l1(0.3), **target),
        "near-kkt": gs.minimize(F, x0, stationarity="near", **bounded, **target),
        "values": gs.minimize(f, VALLEY_START, "2-point", **blind),
        "values-kkt": gs.minimize(f, VALLEY_START, "2-point", **circle, **blind),
    }
    found: Fields = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, res in made.items():
            again = gs.load_certificate(res.certificate.save(Path(folder) / "a.cert"))
            found |= of_certificate(pickle.loads(pickle.dumps(again)), name)
            if hasattr(again, "reduce"):
                found[f"{name}, reduced"] = again.reduce().content_digest()[:16]
    return found


def _filed(name: str, kind: str, seed: int) -> Fields:
    F, x0 = EXPRESSIONS[name]()
    res = gs.minimize(F, x0, eps=1e-3, delta=1e-3, stationarity=kind, rng=seed, max_calls=1500)
    with tempfile.TemporaryDirectory() as folder:
        again = gs.load_certificate(res.certificate.save(Path(folder) / "a.cert"))
        try:
            proof = res.certificate.export(Path(folder) / "proof.json", F)
        except gs.GoldsteinError as refused:
            return {**of_certificate(again), **of_error(refused)}
        judged = _shell("-m", "goldstein_check", str(proof))
        shown = judged.stdout.replace(folder, "")
        return {**of_certificate(again), "proof": digest(proof.read_bytes()), "judged": shown}


def _shell(*arguments: str, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    # Where machine code is kept is in the environment already; nothing else is remembered.
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *arguments], text=True, capture_output=True, cwd=cwd, env=env, check=False
    )


@family(1)
def shell() -> Tasks:
    target = ("--eps", "1e-3", "--delta", "1e-3", "--seed", "0")
    for name, steps in {
        "solve, verify": [("solve", "mifflin_2", *target, "--out", "run"),
                          ("verify", "run/certificate.cert", "mifflin_2")],
        "constrained": [("solve", "mad_1", *target, "--out", "run"), ("verify", "run")],
        "certify": [("certify", "cb3", "--x", "1,1", "--delta", "1e-2", "--seed", "0")],
        "problems": [("problems",)], "help": [("--help",), ("solve", "--help")],
        "unknown": [("solve", "nowhere", *target)], "explain": [("explain", "cb3")],
    }.items():  # fmt: skip
        yield name, partial(_commands, steps)


def _commands(steps: list[tuple[str, ...]], seed: int) -> Fields:
    found: Fields = {}
    with tempfile.TemporaryDirectory() as folder:
        for k, step in enumerate(steps):
            done = _shell("-m", "goldstein.cli", *step, cwd=folder)
            said = (done.stdout + done.stderr).replace(folder, "")
            said = re.sub(r"\d[\d.e+-]* ?(s|ms|seconds)\b", "# s", said)
            if step[0] == "verify":  # on the command line a check draws its own seed
                said = re.sub(r"\d[\d.]*(e[-+]?\d+)?", "#", said)
            said = re.sub(r" +", " ", said)
            found |= {f"{k}.code": done.returncode, f"{k}.said": said}
    return found


@family(1)
def surface() -> Tasks:
    """Public names, and what they take."""
    for module in PUBLIC:
        yield module, partial(_names, module)
    yield "old spellings", _spelled
    yield "Result", lambda s: {f.name: str(f.type) for f in dataclasses.fields(gs.Result)}
    yield "Status", lambda s: {one.name: f"{one.message}; {one.advice}" for one in gs.Status}


def _names(module: str, seed: int) -> Fields:
    found = importlib.import_module(module)
    return {name: _signature(getattr(found, name)) for name in sorted(found.__all__)}


def _spelled(seed: int) -> Fields:
    return {name: _signature(getattr(gs, name)) for name in SPELLINGS.split()}


def _signature(thing: Any) -> str:
    """Return the arguments and their defaults, and of a class its public methods too."""
    if not callable(thing):
        return type(thing).__name__
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return type(thing).__name__
    taken = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters
    )
    methods = [name for name in dir(thing) if inspect.isclass(thing) and not name.startswith("_")]
    return re.sub(r" at 0x\w+", "", f"({taken}) {' '.join(methods)}".strip())
