"""Records with methods: what compiled decisions take for a state."""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.extending import models, register_model


class StateRecord(types.Record):
    """A record of Numba, of a class of its own: methods are looked up before fields."""


register_model(StateRecord)(models.RecordModel)


def state_record(dtype: Any) -> Any:
    """Return the type of such a record and of those inside it; without a `dim` it stays plain."""
    plain = numba.from_dtype(dtype)
    if "dim" not in dtype.names:
        return plain
    fields: list[Any] = []
    for name, field in plain.fields.items():
        nested = dtype[name].names is not None
        kind = state_record(dtype[name]) if nested else field.type
        place = {"type": kind, "offset": field.offset, "alignment": field.alignment}
        fields.append((name, place))
    return StateRecord(fields, plain.size, plain.aligned)
