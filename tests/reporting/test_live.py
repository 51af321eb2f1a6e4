"""The live view: for this machine, for those who know the address, and never in the way."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import goldstein as gs
from goldstein.reporting.live import Live
from goldstein.reporting.subject import Subject
from goldstein.solvers import State

# A process that was started in the background inherits that Ctrl-C is ignored: not this one.
SLOW = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)

import time
import numpy as np

x0 = np.linspace(1.0, 2.0, 8)

def f(x):
    time.sleep({pause})
    return float(np.abs(x[1:] - x[:-1] ** 2).sum() + np.abs(1 - x[0]))

def grad(x):
    s = np.sign(x[1:] - x[:-1] ** 2)
    g = np.zeros(8)
    g[1:] += s
    g[:-1] -= 2 * s * x[:-1]
    g[0] -= np.sign(1 - x[0])
    return g
"""


def ask(url: str, path: str = "", method: str = "GET", host: str = "") -> tuple[int, bytes, Any]:
    parts = urlsplit(url)
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=10)
    connection.request(method, parts.path + path, headers={"Host": host or parts.netloc})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def news(url: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(url, "news")[1])
    return found


def is_open(url: str) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port)) == 0


@pytest.fixture
def view() -> Iterator[Live]:
    with Live("a run", eps=1e-3, delta=1e-3) as live:
        yield live


def test_the_page_and_its_news(view: Live) -> None:
    status, page, headers = ask(view.url)
    assert status == 200
    assert b"Running" in page
    assert headers["Cache-Control"] == "no-store"
    before = news(view.url)
    view.watch(State(x=np.zeros(3), fx=2.5, bound=0.1, radius=1e-3), 17)
    after = news(view.url)
    assert after["version"] > before["version"]
    assert "<svg" in after["html"]
    assert "17" in after["html"]
    assert not after["done"]


def test_only_those_who_know_the_address_see_anything(view: Live) -> None:
    other = view.url[:-2] + ("A" if view.url[-2] != "A" else "B") + "/"
    assert ask(other)[0] == 404
    assert ask(view.url, "../")[0] == 404
    assert ask(view.url, "else")[0] == 404
    root = view.url.rpartition("/")[0].rpartition("/")[0] + "/"
    assert ask(root)[0] == 404
    token = urlsplit(view.url).path.strip("/")
    assert len(token) >= 32
    assert token.encode() not in ask(root)[1]


def test_other_names_of_this_machine_are_refused(view: Live) -> None:
    port = urlsplit(view.url).port
    for host in (
        "example.org",
        f"example.org:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port}.example.org",
    ):
        assert ask(view.url, host=host)[0] == 403, host
    assert ask(view.url, host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_there_is_nothing_to_write_to(view: Live, method: str) -> None:
    assert ask(view.url, method=method)[0] == 501


def test_nothing_is_drawn_while_nobody_looks(view: Live) -> None:
    state = State(x=np.zeros(3), fx=2.5, bound=0.1, radius=1e-3)
    for calls in range(50):
        view.watch(state, calls)
    assert news(view.url)["version"] == 0
    view.watch(state, 51)
    assert news(view.url)["version"] == 1


def test_a_page_that_cannot_be_drawn_does_not_end_the_run(
    view: Live, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(subject: Subject) -> str:
        raise RuntimeError("no paint")

    monkeypatch.setattr("goldstein.reporting.live.body", fails)
    ask(view.url)
    res = gs.minimize(
        lambda x: abs(x).sum(), [1.0, 2.0], np.sign, eps=1e-3, delta=1e-3, rng=0,
        progress=view.watch,
    )  # fmt: skip
    assert res.success
    assert capsys.readouterr().err.count("no paint") == 1


def test_the_server_ends_with_the_run(runs: dict[str, gs.Result]) -> None:
    begin = time.monotonic()
    with Live("a run", eps=1e-3, delta=1e-3) as view:
        url = view.url
        result = runs["plane"]
        view.finish(Subject(result, "a run", result.asked.fun))
        last = news(url)
        assert last["done"]
        assert "Every check passed" in last["html"]
    assert not is_open(url)
    assert time.monotonic() - begin < 60


def started(tmp_path: Path, pause: float) -> tuple[subprocess.Popen[str], str]:
    (tmp_path / "slow.py").write_text(SLOW.format(pause=pause))
    words = [sys.executable, "-m", "goldstein.cli", "solve", "slow.py", "--eps", "1e-3"]
    process = subprocess.Popen(
        [*words, "--delta", "1e-3", "--live", "--out", "run"], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "MPLBACKEND": "agg"},
    )  # fmt: skip
    assert process.stderr is not None
    found = re.search(r"http://\S+", process.stderr.readline())
    assert found is not None
    return process, found.group()


def test_ctrl_c_ends_run_and_server(tmp_path: Path) -> None:
    process, url = started(tmp_path, pause=0.05)
    end = time.monotonic() + 60
    while news(url)["version"] < 1 and time.monotonic() < end:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "STOPPED" in out
    assert "Traceback" not in err
    assert not is_open(url)


def test_the_page_says_running_until_there_are_news(view: Live, browser: Any) -> None:
    """A slow function may take minutes before its first step."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(view.url)
    WebDriverWait(browser, 30).until(
        lambda driver: driver.find_element(By.ID, "live-state").text == "running"
    )
    text = browser.find_element(By.TAG_NAME, "body").text
    assert "Nothing is proved before the run ends" in text
    assert "undefined" not in text


def test_the_view_follows_a_run_without_reloading(tmp_path: Path, browser: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    process, url = started(tmp_path, pause=0.005)
    try:
        browser.get_log("browser")
        browser.get(url)
        browser.execute_script("window.same = true")
        wait = WebDriverWait(browser, 60, poll_frequency=0.1)

        def calls(driver: Any) -> int:
            facts = driver.execute_script(
                "return Object.fromEntries([...document.querySelectorAll('.facts div')].map("
                "d => [d.children[0].textContent, d.children[1].textContent]))"
            )
            return int(str(facts.get("calls", "0")).split()[0])

        first = wait.until(calls)
        assert browser.find_element(By.ID, "live-state").text == "running"
        wait.until(lambda driver: calls(driver) > first)
        wait.until(
            lambda driver: driver.find_element(By.ID, "live-state").text == "the run has ended"
        )
        assert browser.find_element(By.CSS_SELECTOR, "#files a[download='certificate.cert']")
        assert browser.execute_script("return window.same"), "the page was loaded again"
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 1), err
        assert "certificate" in out
        assert not is_open(url)
        assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []
    finally:
        process.kill()
