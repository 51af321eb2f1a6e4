"""Print the versions of everything that goldstein[test] brings, as they are installed here."""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(name: str, extras: set[str], seen: dict[str, set[str]]) -> None:
    """Collect a distribution, its extras, and all it needs on this machine."""
    key = canonicalize_name(name)
    if key in seen and extras <= seen[key]:
        return
    seen[key] = seen.get(key, set()) | extras
    try:
        needs = metadata.requires(key) or []
    except metadata.PackageNotFoundError:
        return  # an extra that is not installed
    for line in needs:
        need = Requirement(line)
        environments = [{"extra": extra} for extra in seen[key] | {""}]
        if need.marker is None or any(need.marker.evaluate(e) for e in environments):
            closure(need.name, set(need.extras), seen)


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
