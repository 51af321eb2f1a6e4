"""The page about a run: self-contained, true, safe, small and quick."""

from __future__ import annotations

import base64
import pickle
import re
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import goldstein as gs
from goldstein.cli.app import app
from goldstein.parallel import multistart
from goldstein.reporting.page import write_report
from goldstein.result import History

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>${7*7}{{7*7}}</title>'

COMMON = {"course", "geometry", "checks", "files"}
PARTS = {
    "plane": COMMON | {"curve", "structure"},
    "constrained": COMMON | {"constraints", "structure"},
    "svm": COMMON | {"curve", "structure", "pivot", "model", "proof"},
    "network": COMMON | {"curve", "structure", "model", "proof"},
    "plus": COMMON | {"structure"},
    "values": COMMON | {"constraints"},
    "values_constrained": COMMON | {"constraints"},
    "near_constrained": COMMON | {"pivot", "constraints", "proof"},
}


class Page(HTMLParser):
    """Tags, ids and addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.html = html
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name == "id":
                self.ids[value] += 1
            if name in ("href", "src", "xlink:href"):
                self.addresses.append(value)

    @property
    def sections(self) -> set[str]:
        return set(re.findall(r'<section id="(\w+)"', self.html))

    def download(self, filename: str) -> bytes:
        found = re.search(f'download="{filename}" href="data:[^;]+;base64,([^"]*)"', self.html)
        assert found is not None
        return base64.b64decode(found.group(1))


def page_of(result: Any, folder: Path, **options: Any) -> Page:
    return Page(write_report(result, folder / "page.html", **options).read_text())


@pytest.fixture(scope="module")
def pages(reports: dict[str, Path]) -> dict[str, Page]:
    return {name: Page(path.read_text()) for name, path in reports.items()}


@pytest.mark.parametrize("name", PARTS)
def test_the_page_holds_what_it_should(
    runs: dict[str, gs.Result], pages: dict[str, Page], name: str
) -> None:
    result, page = runs[name], pages[name]
    assert page.sections == PARTS[name]
    assert "could not be made" not in page.html
    assert "Stationary, as asked for" in page.html
    assert result.certificate.label in page.html
    assert ("Proved:" in page.html) != (result.certificate.label == "estimated")
    assert "FAILED" not in page.html
    # Nothing is fetched from anywhere: addresses are fragments or data.
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert set(page.ids.values()) == {1}
    # With a proof file comes what decides about it, as text until it is asked to.
    assert page.tags["script"] == 1 + ("checker" in page.ids)
    assert page.tags["svg"] >= 3


@pytest.mark.parametrize("name", PARTS)
def test_the_certificate_comes_with_the_page(
    runs: dict[str, gs.Result], pages: dict[str, Page], name: str, tmp_path: Path
) -> None:
    result, page = runs[name], pages[name]
    (tmp_path / "mine.cert").write_bytes(page.download("certificate.cert"))
    back = gs.load_certificate(tmp_path / "mine.cert")
    assert back.verify(result.asked.fun, **result.asked.limits).ok


def test_the_proof_file_of_the_page_is_true(pages: dict[str, Page], tmp_path: Path) -> None:
    import goldstein_check

    (tmp_path / "proof.json").write_bytes(pages["svm"].download("proof.json"))
    assert goldstein_check.main([str(tmp_path / "proof.json")]) == 0


def test_the_page_of_a_pickled_result_says_what_is_missing(
    runs: dict[str, gs.Result], tmp_path: Path
) -> None:
    back = pickle.loads(pickle.dumps(runs["plane"]))
    page = page_of(back, tmp_path)
    assert "nothing was asked again" in page.html
    assert "curve" not in page.sections
    again = page_of(back, tmp_path, fun=runs["plane"].asked.fun)
    assert "Every check passed" in again.html


def test_a_certificate_of_another_function_is_not_called_proved(
    runs: dict[str, gs.Result], tmp_path: Path
) -> None:
    def other(x: Any) -> float:
        return float(np.abs(x - 5.0).sum())

    page = page_of(runs["plane"], tmp_path, fun=other, jac=lambda x: np.sign(x - 5.0))
    assert "does not hold for this function" in page.html
    assert "Stationary, as asked for" not in page.html
    assert 'class="verdict bad"' in page.html
    assert "Proved:" not in page.html


def test_a_run_that_fails_is_not_called_stationary(tmp_path: Path) -> None:
    res = gs.minimize(
        lambda x: abs(x).sum(), [3.0, 4.0], np.sign, eps=1e-6, delta=1e-6, max_calls=9
    )
    assert not res.success
    page = page_of(res, tmp_path)
    assert "Not proved as asked for" in page.html
    assert "OUT_OF_CALLS" in page.html
    nothing = replace(res, certificate=None, asked=None)
    assert "Nothing was proved" in page_of(nothing, tmp_path).html


def test_strange_texts_stay_texts(runs: dict[str, gs.Result], tmp_path: Path) -> None:
    kept = replace(runs["plane"], message=EVIL, method=EVIL, success=False, asked=None)
    page = page_of(kept, tmp_path, title=EVIL)
    clean = page_of(replace(kept, message="", method=""), tmp_path, title="x")
    assert page.tags == clean.tags
    assert "49" not in re.sub(r"<svg.*?</svg>", "", page.html, flags=re.DOTALL).partition("<h2")[0]
    assert re.search(r"script-src 'sha256-[\w+/=]+'", page.html)


def test_structured_points_are_verified_on_the_page(tmp_path: Path) -> None:
    def f(p: Any) -> float:
        return float(np.abs(p["a"]).sum() + abs(p["b"] - 1.0))

    def g(p: Any) -> Any:
        return {"a": np.sign(p["a"]), "b": np.sign(p["b"] - 1.0)}

    res = gs.minimize(f, {"a": np.ones((2, 2)), "b": 0.0}, g, eps=1e-3, delta=1e-3, rng=0)
    assert "Every check passed" in page_of(res, tmp_path).html


def test_long_runs_make_small_pages_quickly(runs: dict[str, gs.Result], tmp_path: Path) -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    steps = np.arange(n)
    history = History(
        steps.tolist(), (1 / (1 + steps) + 1e-3 * rng.random(n)).tolist(),
        (1 + rng.random(n)).tolist(), [1e-3] * n, (1e-3 * steps).tolist(),
    )  # fmt: skip
    long = replace(runs["plane"], history=history)
    page_of(long, tmp_path)  # loads matplotlib
    begin = time.process_time()
    path = long.report(tmp_path / "long")
    assert time.process_time() - begin < 3.0
    assert path.stat().st_size < 1_000_000


def test_many_starts(tmp_path: Path) -> None:
    def two_wells(x: Any) -> float:
        return float(abs(x[0] ** 2 - 1) + 0.3 * abs(x[0] - 1))

    def slope(x: Any) -> Any:
        return np.array([2 * x[0] * np.sign(x[0] ** 2 - 1) + 0.3 * np.sign(x[0] - 1)])

    starts = [[2.0], [-2.0], [0.5], [-0.5], [3.0]]
    many = multistart(two_wells, starts, slope, eps=1e-3, delta=1e-3, rng=0)
    page = Page(many.report(tmp_path / "many").read_text())
    assert "starts" in page.sections
    assert f"5 runs ended at {len(many.points)} distinct points." in page.html
    assert "could not be made" not in page.html


def test_the_command_makes_the_same_page(tmp_path: Path) -> None:
    run, runner = tmp_path / "run", CliRunner()
    solve = ["solve", "curtis_overton", "--eps", "1e-3", "--delta", "1e-3", "--out", str(run)]
    assert runner.invoke(app, solve).exit_code == 0
    target = tmp_path / "report.html"
    made = runner.invoke(app, ["report", str(run), "-o", str(target)])
    assert made.exit_code == 0, made.output
    page = Page(target.read_text())
    assert page.sections == PARTS["constrained"]
    assert "Every check passed" in page.html
    assert "goldstein verify certificate.cert curtis_overton" in page.html
    blind = runner.invoke(app, ["report", str(run), "--blind"])
    assert blind.exit_code == 0
    assert "nothing was asked again" in (run / "report.html").read_text()


def test_a_folder_that_is_no_run_is_refused_in_a_sentence(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["report", str(tmp_path)]).exit_code == 2
    (tmp_path / "result.json").write_text(
        '{"request": {"problem": "mifflin_2", "eps": 1, "delta": 1}, "status": "VERIFIED"}'
    )
    refused = runner.invoke(app, ["report", str(tmp_path)])
    assert refused.exit_code == 2
    assert "not a run" in refused.stderr
    with pytest.raises(gs.InputError, match="no folder"):
        gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, eps=0.1, delta=0.1, rng=0).report(
            tmp_path / "missing" / "page.html"
        )


def test_the_page_of_a_minimum_has_all_its_parts(tmp_path: Path) -> None:
    x = gs.Variable(2)
    F = 10 * gs.abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2
    res = gs.minimize(F, [0.5, 0.5], eps=1e-3, delta=1e-3, stationarity="minimum", rng=0)
    text = res.report(tmp_path / "run", F).read_text()
    assert res.certificate.kind == "minimum"
    assert "random lines through x" in text
    assert "could not be made" not in text
    saddle = gs.sum(x * x / 2 - gs.abs(x))
    told = gs.certify(saddle, [0.0, 0.0], delta=1e-6, stationarity="minimum")
    text = write_report(
        replace(res, x=told.x, certificate=told), tmp_path / "no", saddle
    ).read_text()
    assert told.kind == "refutation"
    assert "could not be made" not in text
