"""Print the versions of everything that goldstein[test] brings, as they are installed here."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def closure(name: str, extras: set[str], seen: dict[str, set[str]]) -> None:
    """Collect a distribution, its extras, and all it needs on this machine."""
    key = canonicalize_name(name)
    if key in seen and extras <= seen[key]:
        return
    seen[key] = seen.get(key, set()) | extras
    for line in needs_of(key):
        need = Requirement(line)
        environments = [{"extra": extra} for extra in seen[key] | {""}]
        if need.marker is None or any(need.marker.evaluate(e) for e in environments):
            closure(need.name, set(need.extras), seen)


def needs_of(name: str) -> list[str]:
    """Return the requirements of a distribution; ours as they stand in pyproject.toml."""
    if name == "goldstein":
        project = tomllib.loads(PROJECT.read_text())["project"]
        extras = project["optional-dependencies"].items()
        ours = [f'{need}; extra == "{extra}"' for extra, needs in extras for need in needs]
        return [*project["dependencies"], *ours]
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []  # an extra that is not installed


def main() -> None:
    seen: dict[str, set[str]] = {}
    closure("goldstein", {"test"}, seen)
    print("# Made by `make lock`; constraints for `make test`, not requirements of the package.")
    for name in sorted(seen):
        try:
            version = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
        if name != "goldstein":
            print(f"{name}=={version}")


if __name__ == "__main__":
    main()
