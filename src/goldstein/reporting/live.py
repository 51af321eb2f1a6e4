"""A page that follows a run: on this machine only, behind a random address, nothing to write to."""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from goldstein.reporting.page import body, page
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import matplotlib_for
from goldstein.result import Asked, History, Result, Status

#: Seconds between two pictures, and how many times longer than drawing one takes.
_INTERVAL, _SHARE = 0.5, 5.0
#: Seconds without a question after which nobody is looking.
_AWAY = 5.0
#: Seconds that the last page waits to be fetched; after Ctrl-C nobody wants to wait.
_PATIENCE, _IMPATIENCE = 10.0, 1.5

_HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip


class Live:
    """A server for one run; a context manager.

    Pictures are drawn by the thread of the run, now and then, and only while somebody looks; the
    server hands out what is there.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> with Live("a run", eps=1e-3, delta=1e-3) as view:
    ...     print(view.url.startswith("http://127.0.0.1:"))
    ...     res = gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, eps=1e-3, delta=1e-3, rng=0,
    ...                       progress=view.watch)
    True
    """

    def __init__(self, title: str, eps: float, delta: float, method: str = "") -> None:
        matplotlib_for("the live view")  # now, and not in the middle of the run
        self._title, self._asked, self._method = title, Asked(eps, delta), method
        self._history = History()
        self._begin = time.monotonic()
        self._due = 0.0
        self._broken = False
        self._patience = _PATIENCE
        self._server = _Server(page(self._running(np.zeros(0), np.nan, 0, 0), live="news"))

    @property
    def url(self) -> str:
        """Where the page is; whoever knows it can look."""
        return self._server.url

    def __enter__(self) -> Live:
        self._server.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        try:
            if error is None:
                expected = sys.stderr is not None and sys.stderr.isatty()
                self._server.wait_until_seen(self._patience, expected)
        except KeyboardInterrupt:
            pass  # that is how one says: enough
        finally:
            self._server.stop()

    def watch(self, state: Any, calls: int) -> None:
        """What `minimize(..., progress=...)` calls now and then."""
        now = time.monotonic()
        self._history.append(calls, state.fx, state.bound, state.radius, now - self._begin)
        if state.violation is not None:
            self._history.violation.append(state.violation)
        if self._broken or now < self._due or not self._server.watched:
            return
        self._publish(self._running(state.x, state.fx, state.steps, calls), done=False)
        self._due = time.monotonic() + max(_INTERVAL, _SHARE * (time.monotonic() - now))

    def finish(self, subject: Subject) -> None:
        """Show the result."""
        if subject.result.status is Status.STOPPED:
            self._patience = _IMPATIENCE
        self._publish(subject, done=True)

    def _publish(self, subject: Subject, *, done: bool) -> None:
        try:
            html = body(subject)
        except Exception as failure:  # a page that cannot be drawn must not end a run
            self._broken = True
            sys.stderr.write(f"warning: the live view has stopped: {failure}\n")
            return
        self._server.publish(subject.title, html, done)

    def _running(self, x: Any, fx: float, steps: int, calls: int) -> Subject:
        result = Result(
            x=x, fun=fx, success=False, status=Status.STOPPED, message="", nit=steps, nfev=0,
            ngev=0, certificate=None, history=self._history, seed=0, method=self._method,
            time=time.monotonic() - self._begin, asked=self._asked,
        )  # fmt: skip
        return Subject(result, self._title, running=True, calls=calls)


class _Server:
    """Hands out one page and its news, to whoever knows the token."""

    def __init__(self, shell: str) -> None:
        self._token = secrets.token_urlsafe(24)
        self._shell = shell.encode()
        self._news: dict[str, Any] = {"version": 0, "done": False}
        self._asked = -np.inf
        self._seen = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.answer = self._answer  # type: ignore[attr-defined]
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )

    @property
    def _port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/{self._token}/"

    @property
    def watched(self) -> bool:
        """Whether somebody has asked a moment ago."""
        return time.monotonic() - self._asked < _AWAY

    def start(self) -> None:
        self._thread.start()

    def publish(self, title: str, html: str, done: bool) -> None:
        """Replace the news by later ones; one assignment, so that a reader never sees half."""
        version = self._news["version"] + 1
        self._news = {"version": version, "title": title, "html": html, "done": done}

    def wait_until_seen(self, seconds: float, expected: bool) -> None:
        """Give the last page a chance to be fetched by those who look, or are expected to."""
        if self._news["done"] and (self.watched or expected):
            self._seen.wait(seconds)

    def stop(self) -> None:
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def _answer(self, hosts: list[str], path: str) -> tuple[HTTPStatus, str, bytes]:
        """Another name for this machine may be a page of a stranger: it is refused."""
        if hosts not in ([f"127.0.0.1:{self._port}"], [f"localhost:{self._port}"]):
            return HTTPStatus.FORBIDDEN, "text/plain", b"another host\n"
        token, _, what = urlsplit(path).path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n"
        if what not in ("", "news"):
            return HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n"
        self._asked = time.monotonic()
        if what == "":
            return HTTPStatus.OK, "text/html; charset=utf-8", self._shell
        news = self._news
        if news["done"]:
            self._seen.set()
        return HTTPStatus.OK, "application/json", json.dumps(news).encode()


class _Handler(BaseHTTPRequestHandler):
    """GET and nothing else."""

    timeout = 10
    server_version, sys_version = "goldstein", ""

    server: Any

    def do_GET(self) -> None:
        status, kind, content = self.server.answer(self.headers.get_all("Host") or [], self.path)
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            pass  # the reader has gone

    def log_message(self, format: str, *args: Any) -> None:
        """Standard error belongs to the run."""
