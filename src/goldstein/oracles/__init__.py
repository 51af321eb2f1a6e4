"""What a function looks like from the inside of the library: values, gradients, counts, guards."""

from goldstein.oracles.base import Oracle
from goldstein.oracles.counted import CountedOracle
from goldstein.oracles.function import FunctionOracle, as_oracle

__all__ = ["CountedOracle", "FunctionOracle", "Oracle", "as_oracle"]
