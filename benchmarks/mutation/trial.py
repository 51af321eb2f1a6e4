"""One mutant after the other put to the tests, each in a process of its own.

Importing the library and collecting its tests takes seconds, running the few tests that tell takes
a moment. So one process does the first once (`Warm`) and forks for each mutant; the child puts the
changed code into the functions that are there already. What takes effect on import, a constant
say, is tried in a process that has not imported the library yet (`fresh`); so is whatever survives
the first way.

Which lines of the checker a test runs is recorded once: only tests that run a changed line can
notice the change.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.machinery
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import hypothesis
import pytest
from benchmarks.mutation.operators import Mutant, label

#: What a mutant may use beyond what the tests use anyway: bytes, and seconds of each test.
MEMORY, PATIENCE = 2**31, 3.0

OPTIONS = [
    "-x", "-s", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", "0",
    "-p", "no:terminal", "-p", "no:faulthandler", "-p", "no:randomly",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
    "-o", "addopts=--import-mode=importlib --doctest-modules",
]  # fmt: skip

#: Examples that a random test draws; what fails is not made smaller.
EXAMPLES = 20
PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)

Seconds = dict[str, float]
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Profile:
    """What a test costs (CPU seconds), and which lines of which files it runs."""

    seconds: float
    lines: dict[str, list[int]]


def in_child(work: Callable[[Callable[[str], None]], None], limit: float) -> str:
    """Run something in a child process; return the last word it says, or how it ended."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(reading)

        def say(word: str) -> None:
            os.write(writing, word.encode() + b"\n")

        # Tests may print; the child says what it has to say through the pipe.
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            work(say)
        except BaseException as failure:
            say(f"{type(failure).__name__}: {failure}"[:300])
        finally:
            os._exit(0)
    os.close(writing)
    alarm = threading.Timer(limit, lambda: os.kill(child, signal.SIGKILL))
    alarm.start()
    with open(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    alarm.cancel()
    if os.WIFSIGNALED(status):
        return f"{said.splitlines()[-1] if said else ''} (signal {os.WTERMSIG(status)})"
    return said.splitlines()[-1] if said else ""


class _Tests:
    """A plugin for pytest: runs chosen tests, and says which one failed."""

    def __init__(self, say: Callable[[str], None], seconds: Seconds) -> None:
        self.say, self.seconds = say, seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            _few_examples(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # Seconds of this process, however busy the machine is; who needs more is killed, and so
        # noticed.
        self.say(f"{item.nodeid} does not end")
        patience = PATIENCE + 10.0 * self.seconds.get(item.nodeid, 1.0)
        signal.setitimer(signal.ITIMER_PROF, patience)
        answer = yield
        self.say("")
        return answer

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        # Before pytest writes its long report, which nobody reads.
        if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self.say(item.nodeid)
            os._exit(1)


def _limited() -> None:
    with open("/proc/self/statm") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(mutant: Mutant, code: CodeType) -> None:
    """Whoever imports the file of a mutant from now on gets the changed one."""
    loader = importlib.machinery.SourceFileLoader
    honest = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        return code if self.path == str(mutant.path) else honest(self, fullname)

    loader.get_code = get_code  # type: ignore[method-assign]


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions of a file, methods included, inner functions not."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & 0x2:  # optimised: a function, not the body of a class
                yield part
            else:
                yield from _functions(part)


def fresh(mutant: Mutant, tests: list[str], seconds: Seconds, limit: float) -> str:
    """Try a mutant where nothing of the library has been imported; return the test that failed."""

    def work(say: Callable[[str], None]) -> None:
        _limited()
        _serve(mutant, mutant.code())
        with _folder() as folder:
            code = pytest.main(
                [*OPTIONS, "--basetemp", folder, *tests], plugins=[_Tests(say, seconds)]
            )
        say("" if code == 0 else f"pytest ends with {code!s}")

    return in_child(work, limit)


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="mutation-")
    try:
        yield f"{folder}/tests"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Warm:
    """Tests that are collected already; `work` is called with them, within pytest."""

    def __init__(self, tests: Iterable[str], work: Callable[[Warm], None]) -> None:
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[Place, list[FunctionType]] = {}
        with _folder() as folder:
            code = pytest.main([*OPTIONS, "--basetemp", folder, *tests], plugins=[self])
        if code:
            raise RuntimeError(f"pytest ends with {code!s}")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            _few_examples(item)
        self.items = {item.nodeid: item for item in items}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise RuntimeError("tests could not be collected")
        gc.collect()
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                self.functions.setdefault(_place(thing.__code__), []).append(thing)
        gc.freeze()
        self.work(self)
        return True

    def _run(self, tests: list[str], plugin: _Tests) -> None:
        chosen = [self.items[name] for name in tests]
        chosen[0].config.pluginmanager.register(plugin)
        for item, after in zip(chosen, [*chosen[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)

    def profile(self, test: str, files: set[str], limit: float) -> Profile | None:
        """Run a test, and record what it costs and runs; nothing if it fails."""
        lines: dict[str, set[int]] = {file: set() for file in files}

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            seen = lines.get(frame.f_code.co_filename)
            if seen is None:
                return None
            seen.add(frame.f_lineno)

            def inside(frame: FrameType, event: str, argument: Any) -> Any:
                seen.add(frame.f_lineno)
                return inside

            return inside

        def work(say: Callable[[str], None]) -> None:
            begin = time.process_time()
            sys.settrace(trace)
            self._run([test], _Tests(say, {test: limit}))
            sys.settrace(None)
            seconds = time.process_time() - begin
            seen = {label(Path(file)): sorted(some) for file, some in lines.items() if some}
            say(json.dumps([seconds, seen]))

        said = in_child(work, 10 * limit)
        return Profile(*json.loads(said)) if said.startswith("[") else None

    def trial(self, mutant: Mutant, tests: list[str], seconds: Seconds, limit: float) -> str:
        """Put the changed function into its place; return the test that failed."""

        def work(say: Callable[[str], None]) -> None:
            _limited()
            code = mutant.code()
            _serve(mutant, code)
            for part in _functions(code):
                if part.co_qualname == mutant.function:
                    for function in self.functions.get(_place(part), []):
                        function.__code__ = part
            self._run(tests, _Tests(say, seconds))
            say("")

        return in_child(work, limit)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _few_examples(item: pytest.Item) -> None:
    """Random tests draw few examples, always the same ones."""
    test = getattr(item, "obj", None)
    settings = getattr(test, "_hypothesis_internal_use_settings", None)
    if test is not None and settings is not None:
        few = min(settings.max_examples, EXAMPLES)
        test._hypothesis_internal_use_settings = hypothesis.settings(
            settings,
            max_examples=few,
            derandomize=True,
            database=None,
            deadline=None,
            phases=PHASES,
        )
