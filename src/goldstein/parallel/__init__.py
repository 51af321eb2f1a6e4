"""Many starts and sweeps on the workers of joblib: cores, a Dask cluster, a Ray cluster."""

try:
    import joblib as _joblib  # noqa: F401
    import threadpoolctl as _threadpoolctl  # noqa: F401
except ImportError as missing:
    from goldstein.extras import missing_extra

    raise missing_extra("goldstein.parallel", "joblib and threadpoolctl", "parallel") from missing

from goldstein.parallel.gathering import Failure
from goldstein.parallel.multistart import MultiStart, StationaryPoint, Sweep, multistart, sweep

__all__ = ["Failure", "MultiStart", "StationaryPoint", "Sweep", "multistart", "sweep"]
