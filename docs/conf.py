"""Sphinx: `make docs` builds the site into build/docs, with warnings as errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import goldstein

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "goldstein"
author = project_copyright = "the authors of goldstein"
version = release = goldstein.__version__
html_title = "goldstein"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": False}
# The examples are expressions of Python, not of LaTeX: single backticks are names.
default_role = "code"
copybutton_prompt_text = ">>> "

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["cards.css"]
html_js_files = ["accessible.js"]
html_copy_source = False
exclude_patterns = ["_build", "README.md"]
suppress_warnings = ["config.cache", "ref.python"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "reset_modules": ("matplotlib",),
}

#: Links to files that are in the repository and not on the site.
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]*)\)")


def _without_files(app: object, name: str, source: list[str]) -> None:
    """A link to a file of the repository becomes its name: the site does not carry it."""

    def plain(match: re.Match[str]) -> str:
        text, target = match.groups()
        path = ((HERE / name).parent / target.partition("#")[0]).resolve()
        if path.is_relative_to(HERE):
            return match.group(0)
        return f"{text} (`{path.relative_to(HERE.parent)}`)"

    source[0] = _OUTSIDE.sub(plain, source[0])


_LITERAL = re.compile(r"(?<![`:])`([^`]+)`(?![`_])")


def _as_markup(app, what, name, obj, options, lines):  # type: ignore[no-untyped-def]
    """Our docstrings write `names` with single backticks, and |x| for a norm."""
    text = _LITERAL.sub(r"``\1``", "\n".join(lines))
    # Outside of literals and examples a bar is a bar.
    pieces = re.split(r"(``.*?``|^ *(?:>>>|\.\.\.).*$)", text, flags=re.DOTALL | re.MULTILINE)
    pieces[::2] = [piece.replace("|", "\\|") for piece in pieces[::2]]
    lines[:] = "".join(pieces).split("\n")


def _not_ours(app, what, name, obj, skip, options):  # type: ignore[no-untyped-def]
    """What classes inherit from other packages is documented there."""
    module = getattr(obj, "__module__", None) or ""
    return skip or module.split(".")[0] in ("sklearn", "torch", "jax", "optax", "enum")


def setup(app):  # type: ignore[no-untyped-def]
    app.connect("source-read", _without_files)
    app.connect("autodoc-process-docstring", _as_markup, priority=900)
    app.connect("autodoc-skip-member", _not_ours)
