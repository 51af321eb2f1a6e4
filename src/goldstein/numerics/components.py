"""Which sets hang together through shared members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def connected(sets: Sequence[Iterable[int]]) -> list[list[int]]:
    """Group the indices of sets that share members, directly or through others.

    Examples
    --------
    >>> connected([{0, 1}, {5}, {1, 2}, {2, 7}])
    [[0, 2, 3], [1]]
    """
    parent = list(range(len(sets)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]  # halve the path for the next caller
            index = parent[index]
        return index

    owner: dict[int, int] = {}
    for index, members in enumerate(sets):
        for member in members:
            parent[root(index)] = root(owner.setdefault(member, index))
    groups: dict[int, list[int]] = {}
    for index in range(len(sets)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())
