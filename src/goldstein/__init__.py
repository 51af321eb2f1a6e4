"""Minimise a function with kinks, and get a proof of how stationary the answer is.

>>> import goldstein as gs
>>> import numpy as np
>>> res = gs.minimize(lambda x: np.abs(x).sum(), [1.0, -2.0], np.sign, eps=1e-6, delta=1e-3, rng=0)
>>> res.success
True
"""

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> module. Resolved on first use, so that `import goldstein` stays light; the same
# names stand in `__init__.pyi` for editors and type checkers.
_NAMES = {
    "goldstein.api": [
        "LookAround", "PrecisionWarning", "Question", "Search", "StationarityCurve", "Target",
        "certify", "certify_result", "look_around", "minimize", "stationarity_curve",
        "suggest_target",
    ],
    "goldstein.result": ["History", "Result", "Status"],
    "goldstein.certificates": [
        "Check", "GoldsteinCertificate", "KKTCertificate", "MinimumCertificate",
        "NearCertificate", "NearKKTCertificate", "PlusCertificate", "Refutation",
        "ValuesCertificate", "ValuesKKTCertificate", "Verification", "load_certificate",
    ],
    "goldstein.calculus": [
        "Expression", "OuterLipschitz", "Variable", "abs", "capped_l1", "clarke_distance",
        "concatenate", "eps_insensitive", "gated_relu", "goldstein_target", "hard_tanh", "hinge",
        "huber", "leaky_relu", "linear", "log_sum", "logistic", "max", "max_affine", "maximum",
        "mcp", "min", "minimum", "norm1", "norm2", "pinball", "pseudo_huber", "ramp", "relu",
        "relu6", "row_max", "scad", "smooth_function", "soft_threshold", "softmax_cross_entropy",
        "softplus", "span_test", "square", "squared_hinge", "stack", "sum", "sum_squares",
    ],
    "goldstein.calculus.tracing": ["TraceError", "trace"],
    "goldstein.certificates.confidence": ["ConfidenceBound", "confidence_bound", "confidence_of"],
    "goldstein.reductions.functions": ["Violation"],
    "goldstein.oracles": [
        "FiniteSum", "FunctionOracle", "Oracle", "PartiallySeparable", "SampleStream",
    ],
    "goldstein.oracles.diagnose": ["GradientCheck", "check_gradient"],
    "goldstein.storage.files": ["CheckpointWarning"],
    "goldstein.solvers": [
        "O2NC", "PINGD", "PSINGD", "AdamO2NC", "BundlePINGD", "RAlgorithm", "Solver", "Values",
        "ZerothOrder",
    ],
    "goldstein.errors": [
        "CertificateFileError", "CheckpointError", "GoldsteinError", "InputError",
        "InputTypeError", "KinkError", "MissingExtraError", "NotCertifiableError",
        "NotDeterministicError", "OracleError", "WrongGradientError",
    ],
}  # fmt: skip
_MODULES = [
    "atoms", "calculus", "certificates", "errors", "models", "problems", "prox", "solvers"
]  # fmt: skip
#: Found as attributes too, but not by a star import, which would hide packages of these names.
_ECOSYSTEMS = ["control", "cvxpy", "jax", "onnx", "parallel", "scipy", "sklearn", "torch"]
_WHERE = {name: module for module, names in _NAMES.items() for name in names}

#: Listed: what people write every day. The rest is listed in the modules above, and found here too.
_EVERY_DAY = """
minimize certify certify_result check_gradient suggest_target stationarity_curve trace
confidence_bound load_certificate look_around Search Result Status Oracle FiniteSum
PartiallySeparable SampleStream
Expression Variable abs concatenate hinge huber leaky_relu linear logistic max max_affine maximum
min minimum norm1 norm2 pinball relu row_max smooth_function softplus square squared_hinge stack
sum sum_squares GoldsteinError InputError InputTypeError KinkError MissingExtraError
NotCertifiableError OracleError WrongGradientError
"""

__all__ = sorted([*_EVERY_DAY.split(), *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES or name in _ECOSYSTEMS:
        return importlib.import_module(f"goldstein.{name}")
    raise AttributeError(f"module 'goldstein' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
