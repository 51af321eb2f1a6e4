"""What a function looks like from the inside of the library: values, gradients, counts, guards."""

from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.function import FiniteSum, FunctionOracle, SampleStream, as_oracle
from goldstein.oracles.separable import PartiallySeparable

__all__ = [
    "CountedOracle", "FiniteSum", "FunctionOracle", "Oracle", "PartiallySeparable", "SampleStream",
    "as_oracle",
]  # fmt: skip
