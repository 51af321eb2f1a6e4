"""Exceptions travel between processes as they are."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import goldstein as gs


def raised_by_a_run() -> Exception:
    with pytest.raises(gs.OracleError) as caught:
        gs.minimize(lambda x: 1 / 0, [1.0], np.sign, eps=0.1, delta=0.1)
    return caught.value


ERRORS = [
    raised_by_a_run(), gs.NotDeterministicError("f", 0.1), gs.WrongGradientError("f", "entry 0"),
    gs.KinkError("there", np.ones(2)), gs.InputError("no"), gs.CheckpointError("used"),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("way", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_come_back_whole(error: Exception, way: object) -> None:
    back = way(error)  # type: ignore[operator]
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert repr(vars(back)) == repr(vars(error))
    assert isinstance(back, ValueError) == isinstance(error, ValueError)
