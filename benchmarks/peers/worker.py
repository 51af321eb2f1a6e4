"""Runs competitors in their own environment and asks for function values over a pipe.

Started by `remote.py` with the interpreter of `.venv-peers`; imports nothing of this project.
Messages are one byte of kind, then float64 numbers. A job is ``J`` and a line of JSON. The worker
asks ``E`` (its CPU seconds so far, then x) and is told f and its gradient, then the same of each
inequality c <= 0 and of each equality h = 0 that the job has; it ends with ``R`` (CPU seconds, x)
and a line of text.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import time

import numpy as np

REPLY = os.fdopen(os.dup(1), "wb")
# What the solvers print must not reach the pipe.
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sys.stdout = open(os.devnull, "w")  # noqa: SIM115
ASK = sys.stdin.buffer


class Remote:
    """The function on the other side, and the CPU time of this side without the waiting."""

    def __init__(self, dim, inequalities=0, equalities=0):
        self.dim = dim
        self.inequalities, self.equalities = inequalities, equalities
        self.waited = 0.0
        self.begin = time.process_time()
        self.best_f, self.best_x = np.inf, None

    @property
    def cpu(self):
        return time.process_time() - self.begin - self.waited

    def both(self, x):
        rows = self.rows(x)
        return float(rows[0, 0]), rows[0, 1:].copy()

    def rows(self, x):
        """Return value and gradient of f, of the inequalities and of the equalities."""
        used = self.cpu
        begin = time.process_time()
        x = np.ascontiguousarray(x, dtype=np.float64)
        REPLY.write(b"E" + np.float64(used).tobytes() + x.tobytes())
        REPLY.flush()
        count = 1 + self.inequalities + self.equalities
        numbers = np.frombuffer(ASK.read(8 * count * (1 + self.dim))).reshape(count, -1)
        if numbers[0, 0] < self.best_f:
            self.best_f, self.best_x = float(numbers[0, 0]), x.copy()
        self.waited += time.process_time() - begin
        return numbers


def pygranso(remote, x0, job, loose=False):
    """PyGRANSO with its own tolerances (1e-8 in balls of 1e-4), or with those of the question."""
    import torch
    from pygranso.pygranso import pygranso as solve
    from pygranso.pygransoStruct import pygransoStruct

    def combined(struct):
        rows = torch.from_numpy(remote.rows(struct.x.detach().numpy().ravel()).copy())
        answer = [float(rows[0, 0]), rows[:1, 1:].T]
        for part in torch.split(rows[1:], [remote.inequalities, remote.equalities]):
            answer += [part[:, :1], part[:, 1:].T] if len(part) else [None, None]
        return answer

    options = pygransoStruct()
    options.torch_device = torch.device("cpu")
    options.x0 = torch.from_numpy(x0).reshape(-1, 1)
    options.globalAD = False
    options.double_precision = True
    options.print_level = 0
    options.quadprog_info_msg = False
    options.maxit = 10**6
    if loose:
        options.opt_tol = job["eps"]
        options.evaldist = job["delta"]
    found = solve(var_spec={"x": [x0.size, 1]}, combined_fn=combined, user_opts=options)
    # Of constrained runs the best point that is feasible to its tolerances, where there is one.
    place = (
        getattr(found, "best", found.final)
        if remote.inequalities + remote.equalities
        else found.final
    )
    return place.x.detach().numpy().ravel(), f"termination code {found.termination_code}"


def nlopt_lbfgs(remote, x0, job):
    import nlopt

    def fun(x, gradient):
        value, answer = remote.both(x)
        if gradient.size:
            gradient[:] = answer
        return value

    search = nlopt.opt(nlopt.LD_LBFGS, x0.size)
    search.set_min_objective(fun)
    search.set_xtol_rel(1e-15)
    try:
        return search.optimize(x0), f"code {search.last_optimize_result()}"
    except Exception as failure:  # it raises at the end of most nonsmooth runs
        return remote.best_x, f"{type(failure).__name__}: {failure}"


def torch_adam(remote, x0, job, steps=10_000):
    import torch

    x = torch.tensor(x0, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-4, total_iters=steps)
    for _ in range(steps):
        _, gradient = remote.both(x.detach().numpy())
        x.grad = torch.from_numpy(gradient)
        optimizer.step()
        schedule.step()
    return remote.best_x, f"{steps} steps"


#: What a method imports: loaded before its clock starts.
MODULES = {
    "pygranso": ["torch", "pygranso.pygranso", "pygranso.pygransoStruct"],
    "pygranso-loose": ["torch", "pygranso.pygranso", "pygranso.pygransoStruct"],
    "nlopt-lbfgs": ["nlopt"],
    "torch-adam": ["torch"],
}
SOLVERS = {
    "pygranso": pygranso,
    "pygranso-loose": functools.partial(pygranso, loose=True),
    "nlopt-lbfgs": nlopt_lbfgs,
    "torch-adam": torch_adam,
}


def main():
    while ASK.read(1) == b"J":
        job = json.loads(ASK.readline())
        x0 = np.array(job["x0"], dtype=np.float64)
        for module in MODULES[job["method"]]:
            importlib.import_module(module)
        remote = Remote(x0.size, *job.get("limits", (0, 0)))
        np.random.seed(job["seed"])  # noqa: NPY002
        try:
            x, text = SOLVERS[job["method"]](remote, x0, job)
        except (Exception, SystemExit) as failure:
            x, text = remote.best_x, f"{type(failure).__name__}: {failure}"
        x = np.ascontiguousarray(x0 if x is None else x, dtype=np.float64)
        REPLY.write(b"R" + np.float64(remote.cpu).tobytes() + x.tobytes())
        REPLY.write(text.replace("\n", " ").encode() + b"\n")
        REPLY.flush()


if __name__ == "__main__":
    main()
