"""Optional packages: one sentence for those that are missing."""

from collections.abc import Iterator
from contextlib import contextmanager

from goldstein.errors import MissingExtraError


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, as it works without a package index.

    Examples
    --------
    >>> print(install_hint("jax"))
    in a clone of the project run: pip install ".[jax]"
    """
    return f'in a clone of the project run: pip install ".[{extra}]"'


def missing_extra(what: str, needs: str, extra: str) -> MissingExtraError:
    """Return the error for something whose packages are not installed.

    Parameters
    ----------
    what : str
        What was asked for.
    needs : str
        What it needs, in words.
    extra : str
        The name of the extra in pyproject.toml.

    Examples
    --------
    >>> print(missing_extra("goldstein.jax", "JAX and optax", "jax"))
    goldstein.jax needs JAX and optax, from the extra `jax`; in a clone of the project run:
    pip install ".[jax]"
    """
    return MissingExtraError(
        f"{what} needs {needs}, from the extra `{extra}`; {install_hint(extra)}"
    )


@contextmanager
def from_extra(what: str, needs: str, extra: str) -> Iterator[None]:
    """Import optional packages inside; where one is missing, say what it is needed for."""
    try:
        yield
    except ImportError as missing:
        raise missing_extra(what, needs, extra) from missing
