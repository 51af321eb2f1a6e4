"""Tests neither see nor change what the developer has wished for with `goldstein warm-up`."""

import os
from pathlib import Path

os.environ.setdefault("GOLDSTEIN_CACHE_DIR", str(Path(__file__).parent / "build" / "machine-code"))
