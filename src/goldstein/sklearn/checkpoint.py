"""Fits that can be killed: what an estimator's checkpoint is a checkpoint of."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_random_state

from goldstein.errors import InputTypeError
from goldstein.sklearn.chunked import is_dask_array
from goldstein.storage.folder import NO_STORE, Folder, Store, described, digest, seed_in

#: Parameters that do not change what is fitted, or that parts remember themselves.
_FREE = ("checkpoint", "max_calls", "max_time", "n_jobs", "random_state", "warm_start")


def check_checkpoint(checkpoint: Any) -> None:
    """Refuse what cannot name a folder."""
    if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
        raise InputTypeError(
            f"checkpoint must be the path of a folder, or None; got {type(checkpoint).__name__}."
        )


def seed_of_fit(estimator: Any) -> int:
    """Return the seed: that of the checkpoint where `random_state` is None."""
    recorded = None
    if estimator.random_state is None and estimator.checkpoint is not None:
        recorded = seed_in(estimator.checkpoint)
    if recorded is not None:
        return recorded
    return int(check_random_state(estimator.random_state).randint(2**31 - 1))


@contextlib.contextmanager
def kept_fit(estimator: Any, seed: int, **data: Any) -> Iterator[Store]:
    """Hold the folder of a fit to these data; without one nothing is kept."""
    if estimator.checkpoint is None:
        yield NO_STORE
        return
    parameters = {
        name: value for name, value in estimator.get_params().items() if name not in _FREE
    }
    identity = {
        "estimator": type(estimator).__name__, "seed": seed, "parameters": described(parameters),
        **{name: content_digest(part) for name, part in data.items()},
    }  # fmt: skip
    with Folder(estimator.checkpoint, identity) as folder:
        yield Store(folder.path)


def content_digest(data: Any) -> str:
    """Return a hash of an array, a sparse matrix, a Dask array (chunk by chunk) or a list of them.

    Examples
    --------
    >>> content_digest(np.zeros(3)) == content_digest(np.zeros(3)) != content_digest(np.zeros(4))
    True
    """
    if is_dask_array(data):
        dask = importlib.import_module("dask")
        parts = dask.compute(*(dask.delayed(content_digest)(c) for c in data.to_delayed().ravel()))
    elif sparse.issparse(data):
        parts = [str(data.shape), *map(digest, (data.data, data.indices, data.indptr))]
    elif isinstance(data, list):
        parts = [content_digest(part) for part in data]
    elif isinstance(data, np.ndarray) and data.dtype == object:
        return content_digest([str(part) for part in data])
    else:
        return digest(data)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]
