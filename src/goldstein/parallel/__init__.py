"""Many starts and sweeps on the workers of joblib: cores, a Dask cluster, a Ray cluster."""

from goldstein.extras import from_extra

with from_extra("goldstein.parallel", "joblib and threadpoolctl", "parallel"):
    import joblib as _joblib  # noqa: F401
    import threadpoolctl as _threadpoolctl  # noqa: F401

from goldstein.parallel.gathering import Failure
from goldstein.parallel.multistart import MultiStart, StationaryPoint, Sweep, multistart, sweep

__all__ = ["Failure", "MultiStart", "StationaryPoint", "Sweep", "multistart", "sweep"]
