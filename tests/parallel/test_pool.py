"""No job is lost: what fails is tried again, what kills its workers is found out."""

from __future__ import annotations

import os
import signal
import threading

import joblib
import pytest
import threadpoolctl
from joblib import parallel_config

from goldstein.errors import GoldsteinError, InputError
from goldstein.parallel.pool import Pool, blas_threads


def deadly(job):
    if job == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return job


@pytest.mark.filterwarnings("ignore")  # loky says that workers died
def test_the_job_that_kills_its_worker_is_found_out():
    jobs = [0, 1, 2, "deadly", 4, 5, 6]
    with parallel_config(backend="loky"):
        done = list(Pool(deadly, jobs, n_jobs=2).completed())
    assert sorted(d.position for d in done) == list(range(len(jobs)))
    (trouble,) = [d for d in done if d.trouble is not None]
    assert trouble.position == 3
    assert "the worker died" in trouble.trouble.reason
    assert trouble.trouble.tries >= 2
    assert all(d.answer == jobs[d.position] for d in done if d.trouble is None)


def test_an_error_is_tried_once_more():
    attempts = []

    def flaky(job):
        attempts.append(job)
        if job == "always" or (job == "once" and attempts.count("once") == 1):
            raise OSError("disk full")
        return job

    done = {d.position: d for d in Pool(flaky, ["once", "always", "never"]).completed()}
    assert done[0].answer == "once"
    assert done[1].trouble.reason == "OSError: disk full"
    assert done[1].trouble.tries == 2
    assert "in flaky" in done[1].trouble.traceback
    assert sorted(attempts) == ["always", "always", "never", "once", "once"]


def test_input_that_is_refused_is_not_tried_again():
    attempts = []

    def refuse(job):
        attempts.append(job)
        raise InputError("no")

    (done,) = Pool(refuse, [0]).completed()
    assert isinstance(done.trouble.refused, InputError)
    assert attempts == [0]


def test_after_stop_no_job_is_begun():
    pool = Pool(abs, range(100))
    done = []
    for d in pool.completed():
        done.append(d)
        pool.stop()
    assert len(done) == 1


def test_a_function_that_cannot_travel_is_named():
    lock = threading.Lock()

    def locked(job):
        with lock:
            return job

    with (
        parallel_config(backend="loky"),
        pytest.raises(InputError, match="cannot be sent to other processes"),
    ):
        list(Pool(locked, [0, 1], n_jobs=2).completed())


def test_workers_that_cannot_start_are_an_error_and_no_endless_loop(monkeypatch):
    def broken(self, *args):
        raise RuntimeError("no cluster")

    monkeypatch.setattr(joblib.Parallel, "__call__", broken)
    with pytest.raises(GoldsteinError, match="no cluster"):
        list(Pool(abs, [0, 1], n_jobs=2).completed())


def test_blas_has_one_thread_in_every_worker():
    def threads():
        return {info["num_threads"] for info in threadpoolctl.threadpool_info()}

    with threadpoolctl.threadpool_limits(2):
        before = threads()
        with blas_threads(1):
            with blas_threads(1):
                assert threads() == {1}
            assert threads() == {1}  # somebody is still inside
        assert threads() == before
