"""Look at the site as a browser shows it: pictures, accessibility, search.

    make docs && sh tests/reporting/browser_setup.sh .browser
    python -m benchmarks.pages build/docs --axe .browser/node_modules/axe-core/axe.min.js

Front page, gallery and quickstart (and any other page or report that is named after the site), at
1280 and 390 pixels, light and dark: a picture of each, what axe-core objects to, and whether the
page is wider than the window. Then the first answers of the site's search to a few words.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

PAGES = ["index.html", "gallery/index.html", "quickstart.html", "values_only.html"]
WORDS = ["quantile", "CVaR", "H-infinity", "lasso"]
SIZES = {"desktop": (1280, 1500), "phone": (390, 1700)}
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--hide-scrollbars"]  # fmt: skip
RUN = """const done = arguments[0]; axe.run().then(found => done(found.violations.map(
    v => v.id + ": " + v.nodes[0].html.slice(0, 80))))"""


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


def browser(width: int, height: int, scheme: str) -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for flag in [*FLAGS, f"--user-data-dir={tempfile.mkdtemp()}"]:
        options.add_argument(flag)
    service = Service(shutil.which("chromedriver"))  # else it is looked for in the network
    found = webdriver.Chrome(options=options, service=service)
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    found.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    found.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("pages", nargs="*", help="more pages, or addresses of reports")
    parser.add_argument("--axe", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("shots"))
    asked = parser.parse_args()
    asked.out.mkdir(exist_ok=True)
    handler = functools.partial(Silent, directory=str(asked.site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    for size, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            driver = browser(width, height, scheme)
            for page in [*PAGES, *asked.pages]:
                driver.get(page if "://" in page else base + page)
                time.sleep(1.0)
                name = page.rsplit("://")[-1].strip("/").replace("/", "_")
                driver.save_screenshot(str(asked.out / f"{name}-{size}-{scheme}.png"))
                driver.execute_script(asked.axe.read_text())
                wide = driver.execute_script("return document.documentElement.scrollWidth") > width
                objections = driver.execute_async_script(RUN)
                print(page, size, scheme, objections or "clean", "TOO WIDE" if wide else "")
            driver.quit()
    driver = browser(*SIZES["desktop"], "light")
    for word in WORDS:
        driver.get(f"{base}search.html?q={word}")
        time.sleep(3.0)
        found = driver.find_elements("css selector", "#search-results li > a")
        print(f"{word}: {len(found)} pages, first {[a.text for a in found[:3]]}")
    driver.quit()


if __name__ == "__main__":
    main()
