"""The page in a real browser: no errors, nothing unreadable, every button does what it says."""

from __future__ import annotations

import base64
import gzip
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import goldstein as gs

pytest.importorskip("selenium", reason="NO SELENIUM: pip install selenium")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

NAMES = ["plane", "constrained", "svm", "network"]
DESKTOP, PHONE = 1200, 390
EVIL = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'


@pytest.fixture(scope="module")
def addresses(reports: dict[str, Path]) -> dict[str, str]:
    return {name: reports[name].as_uri() for name in NAMES}


def look(browser: Any, address: str, width: int = DESKTOP, scheme: str = "light") -> None:
    phone = width == PHONE
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wish = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wish})
    browser.get(address)
    # What an earlier test has chosen is not remembered.
    if browser.execute_script(
        "localStorage.clear(); return !!document.documentElement.dataset.theme"
    ):
        browser.refresh()


def errors(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def wait_for(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("nothing happened")


def paper(browser: Any) -> str:
    return str(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_page_is_shown_without_errors(
    browser: Any, addresses: dict[str, str], name: str, width: int
) -> None:
    seen = set()
    for scheme in ("light", "dark"):
        look(browser, addresses[name], width, scheme)
        seen.add(paper(browser))
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, "the page must not be wider than the screen"
        # Every picture is as wide as it can be read, and has something in it.
        for picture in browser.find_elements(By.CSS_SELECTOR, "svg.picture"):
            assert picture.size["width"] >= 280
            assert len(picture.find_elements(By.CSS_SELECTOR, "path")) > 3
    assert len(seen) == 2, "light and dark look the same"
    assert errors(browser) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(
    browser: Any, addresses: dict[str, str], axe: str, name: str, scheme: str
) -> None:
    look(browser, addresses[name], PHONE if scheme == "dark" else DESKTOP, scheme)
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(r.violations.map("
        "v => [v.id, v.impact, v.nodes.slice(0, 3).map(n => n.html)])))"
    )
    assert [v for v in found if v[1] in ("serious", "critical", "moderate")] == []


def test_tables_are_sorted_by_mouse_and_by_keyboard(
    browser: Any, addresses: dict[str, str]
) -> None:
    look(browser, addresses["svm"])
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    table = browser.find_element(By.CSS_SELECTOR, "#model table")
    heads = table.find_elements(By.CSS_SELECTOR, "th button")
    margin = next(k for k, head in enumerate(heads) if head.text == "margin")

    def column() -> list[float]:
        cells = table.find_elements(By.CSS_SELECTOR, f"tbody td:nth-child({margin + 1})")
        return [float(cell.text) for cell in cells]

    before = column()
    assert len(before) > 5
    heads[margin].click()
    assert column() == sorted(before)
    heads[margin].send_keys(Keys.ENTER)
    assert column() == sorted(before, reverse=True)
    th = table.find_elements(By.CSS_SELECTOR, "th")
    assert [h.get_attribute("aria-sort") for h in th].count("descending") == 1


def test_the_theme_is_changed_and_remembered(browser: Any, addresses: dict[str, str]) -> None:
    look(browser, addresses["plane"], scheme="dark")
    dark = paper(browser)
    browser.find_element(By.ID, "theme").click()
    light = paper(browser)
    assert light != dark
    browser.refresh()
    assert paper(browser) == light
    browser.find_element(By.ID, "theme").click()
    assert paper(browser) == dark


def test_the_command_is_copied(browser: Any, addresses: dict[str, str]) -> None:
    look(browser, addresses["plane"])
    button = browser.find_element(By.CSS_SELECTOR, "#files .copy")
    wanted = browser.find_element(By.ID, button.get_attribute("data-copy")).text
    button.click()
    wait_for(lambda: button.text.startswith("Copied"))
    browser.execute_script("document.body.append(document.createElement('textarea'))")
    area = browser.find_element(By.CSS_SELECTOR, "body > textarea")
    area.send_keys(Keys.CONTROL, "v")
    assert area.get_attribute("value") == wanted
    assert "verify(" in wanted


def test_proofs_are_folded_by_keyboard(browser: Any, addresses: dict[str, str]) -> None:
    look(browser, addresses["svm"])
    root = browser.find_element(By.CSS_SELECTOR, "#proof details")
    assert root.get_attribute("open")
    root.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert not root.get_attribute("open")


def test_the_certificate_is_downloaded_and_true(
    browser: Any, addresses: dict[str, str], runs: dict[str, gs.Result]
) -> None:
    look(browser, addresses["constrained"])
    browser.find_element(By.CSS_SELECTOR, "#files a[download='certificate.cert']").click()
    target = browser.downloads / "certificate.cert"
    wait_for(target.is_file)
    asked = runs["constrained"].asked
    assert gs.load_certificate(target).verify(asked.fun, **asked.limits).ok


def test_a_strangers_text_does_not_run(
    browser: Any, runs: dict[str, gs.Result], tmp_path: Path
) -> None:
    evil = replace(runs["plane"], message=EVIL, method=EVIL, success=False, asked=None)
    look(browser, evil.report(tmp_path / "evil", title=EVIL).as_uri())
    assert "<script>" in browser.find_element(By.TAG_NAME, "h1").text
    # Not even what is put into the page later.
    browser.execute_script("document.getElementById('report').innerHTML += arguments[0]", EVIL)
    time.sleep(0.2)
    assert browser.execute_script("return window.hacked === undefined")
    browser.get_log("browser")  # the policy reports what it has refused


def verdict(browser: Any) -> str:
    def said() -> str:
        text = browser.find_element(By.ID, "proof-verdict").text
        return text if text.startswith(("TRUE", "FALSE", "UNREADABLE")) else ""

    return str(wait_for(said, 60))


def test_a_page_decides_its_own_proof_and_one_that_was_tampered_with(
    browser: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    look(browser, reports["svm"].as_uri())
    assert verdict(browser).startswith("TRUE: x is (")
    assert "f(x) = " in browser.find_element(By.ID, "proof-function").text
    browser.find_element(By.ID, "proof-check").click()
    assert verdict(browser).startswith("TRUE")
    page = reports["svm"].read_text()
    link = re.search(r'id="proof-file"[^>]*base64,([^"]*)"', page)
    assert link is not None
    proof = json.loads(base64.b64decode(link[1]))
    proof["x"][0] = "100"
    forged = base64.b64encode(json.dumps(proof).encode()).decode()
    (tmp_path / "forged.html").write_text(page.replace(link[1], forged))
    look(browser, (tmp_path / "forged.html").as_uri())
    assert verdict(browser).startswith("FALSE: a point is farther than delta")
    assert errors(browser) == []


def test_the_checker_page_decides_files_from_disk(
    browser: Any, axe: str, reports: dict[str, Path], tmp_path: Path
) -> None:
    page = tmp_path / "check.html"
    page.write_bytes(files("goldstein.reporting").joinpath("templates/check.html").read_bytes())
    link = re.search(r'id="proof-file"[^>]*base64,([^"]*)"', reports["svm"].read_text())
    assert link is not None
    proof = base64.b64decode(link[1])
    (tmp_path / "proof.json.gz").write_bytes(gzip.compress(proof))
    (tmp_path / "cut.json").write_bytes(proof[:-9])
    for scheme, name, word in (
        ("light", "proof.json.gz", "TRUE"),
        ("dark", "cut.json", "UNREADABLE"),
    ):
        look(browser, page.as_uri(), PHONE, scheme)
        browser.find_element(By.ID, "file").send_keys(str(tmp_path / name))
        assert verdict(browser).startswith(word)
        browser.execute_script(axe)
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run().then(r => done(r.violations.map(v => v.id)))"
        )
        assert found == []
    assert errors(browser) == []
