"""What a function looks like from the inside of the library: values, gradients, counts, guards."""

from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.finite_sum import FiniteSum, SampleStream
from goldstein.oracles.function import FunctionOracle, as_oracle
from goldstein.oracles.separable import PartiallySeparable

__all__ = [
    "CountedOracle", "FiniteSum", "FunctionOracle", "Oracle", "PartiallySeparable", "SampleStream",
    "as_oracle",
]  # fmt: skip
