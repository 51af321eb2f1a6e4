"""64 starts have the same answers on every kind of worker, also when one is killed."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import backends

from goldstein.parallel import MultiStart


@functools.cache
def reference() -> MultiStart:
    return backends.run("sequential", backends.valleys)


def test_every_valley_is_found_and_told_apart():
    found = reference()
    # Values at (+-1, +-1), where the kinks vanish.
    expected = [-0.13, -0.07, 0.07, 0.13]
    assert [point.fun for point in found.points] == pytest.approx(expected, abs=1e-3)
    assert sum(point.count for point in found.points) == backends.STARTS
    assert all(
        point.certificate.verify(backends.valleys, backends.slope).ok for point in found.points
    )


@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
@pytest.mark.filterwarnings("ignore")  # loky and Dask say that a worker died
def test_answers_are_equal_with_a_worker_killed(backend, tmp_path):
    marker = tmp_path / "killed"
    found = backends.run(backend, backends.Deadly(marker, backends.starts()[backends.DEADLY]))
    assert marker.exists() == (backend != "threading")  # a thread cannot be killed
    assert found.failures == []
    assert len(backends.fingerprint(found)) == backends.STARTS
    assert backends.fingerprint(found) == backends.fingerprint(reference())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ray_in_a_process_of_its_own():
    """Eight starts, a worker killed. Ray takes long to start, and leaves threads behind."""
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.backends", "ray", "--starts", "8"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=840, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
