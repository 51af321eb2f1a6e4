"""The library's kernel beside the two checkers that read proof files."""

from __future__ import annotations

import warnings

from benchmarks import three_checkers


def test_the_kernel_decides_the_same_files() -> None:
    """What it proves is supported; it is asked about every kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally, wrong = three_checkers.compare(range(40, 55))
    assert wrong == []
    proved = {name.partition(":")[0] for name in tally if name.endswith("TRUE, kernel TRUE")}
    assert proved >= {"near", "goldstein", "near-kkt", "plus", "minimum"}
