"""The checker of `check.html`, run by Node.js: the same script, without a browser.

    python -m benchmarks.browser_checker --files 900 --cases 300

puts random proof files (`adversary.proof_files`), and exported certificates, honest and forged
(`differential`), to it and to `goldstein-check`, and counts verdicts; they must agree. With
`--coverage` it also says which parts of the script no file has reached.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

CODES = {"TRUE": 0, "FALSE": 1, "UNREADABLE": 2}

_SCRIPT = """
const fs = require("fs");
const goldstein = require(process.argv[2]);
for (const name of fs.readFileSync(process.argv[3], "utf8").split("\\n").filter(Boolean)) {
  let found;
  try {
    const reader = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
    found = goldstein.judge(reader.decode(fs.readFileSync(name)));
  } catch (why) { found = {verdict: "UNREADABLE", why: String(why)}; }
  console.log(JSON.stringify(found));
}
"""


def available() -> bool:
    """Say whether there is a Node.js, and it may be used."""
    return shutil.which("node") is not None and "GOLDSTEIN_WITHOUT_NODE" not in os.environ


def source() -> str:
    """Return the script as it stands in the page."""
    page = resources("goldstein.reporting").joinpath("templates", "check.html").read_text("utf-8")
    return page.split('<script id="checker">')[1].split("</script>")[0]


def judged(texts: list[str], coverage: Path | None = None) -> list[dict[str, str]]:
    """Return what the script says about the texts of proof files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "checker.js").write_text(source() + "\nmodule.exports = goldstein;\n")
        (folder / "run.js").write_text(_SCRIPT)
        paths = [folder / f"{i}.json" for i in range(len(texts))]
        for path, text in zip(paths, texts):
            path.write_text(text, "utf-8", "surrogateescape")
        (folder / "list").write_text("\n".join(map(str, paths)))
        done = subprocess.run(
            ["node", folder / "run.js", folder / "checker.js", folder / "list"],
            capture_output=True, text=True, check=True, timeout=600,
            env={**os.environ, **({"NODE_V8_COVERAGE": str(coverage)} if coverage else {})},
        )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def python_codes(texts: list[str]) -> list[tuple[int, str]]:
    """Return exit codes and words of `goldstein-check` for the same texts."""
    import goldstein_check

    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.json"
        for text in texts:
            path.write_text(text, "utf-8", "surrogateescape")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                code = goldstein_check.main([str(path)])
            found.append((code, said.getvalue().partition("\n")[0]))
    return found


def disagreements(texts: list[str], coverage: Path | None = None) -> tuple[Counter[Any], list[str]]:
    """Count pairs of verdicts, and describe those that differ."""
    tally: Counter[Any] = Counter()
    wrong = []
    for i, ((code, said), other) in enumerate(zip(python_codes(texts), judged(texts, coverage))):
        tally[code, CODES[other["verdict"]]] += 1
        if code != CODES[other["verdict"]]:
            wrong.append(f"file {i}: {said[:200]} | {other['verdict']}: {other['why'][:200]}")
    return tally, wrong


def exported(seeds: range) -> list[str]:
    """Return proof files of honest and forged certificates."""
    from benchmarks.differential import cases

    from goldstein.errors import GoldsteinError

    texts = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for case in cases(seed):
                with contextlib.suppress(GoldsteinError):
                    path = case.certificate.export(Path(folder) / "proof.json", case.function)
                    texts.append(path.read_text())
    return texts


def unreached(folder: Path) -> list[str]:
    """Return the parts of the script that Node.js counted as never run."""
    text, found = source(), []
    for report in folder.glob("*.json"):
        for script in json.loads(report.read_text())["result"]:
            if script["url"].endswith("checker.js"):
                for part in (r for f in script["functions"] for r in f["ranges"]):
                    if part["count"] == 0:
                        found.append(
                            " ".join(text[part["startOffset"] : part["endOffset"]].split())
                        )
    return found


def main() -> None:
    from benchmarks.adversary.proof_files import FORGED, files

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=900)
    options.add_argument("--cases", type=int, default=300)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--coverage", action="store_true")
    given = options.parse_args()
    texts = [json.dumps(document) for document in FORGED.values()]
    texts += [f.text for s in range(given.seed, given.seed + given.files) for f in files(s)]
    texts += exported(range(given.seed, given.seed + given.cases))
    with tempfile.TemporaryDirectory() as folder:
        tally, wrong = disagreements(texts, Path(folder) if given.coverage else None)
        missed = unreached(Path(folder)) if given.coverage else []
    for line in [*wrong[:40], *(f"never run: {part[:160]}" for part in missed)]:
        print(line)
    said = ", ".join(f"{pair}: {n}" for pair, n in sorted(tally.items()))
    print(f"{len(texts)} files; (goldstein-check, page): {said}; disagreements: {len(wrong)}")


if __name__ == "__main__":
    main()
