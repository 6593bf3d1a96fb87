"""Where the tests of this folder run, and what is expected to serve there."""

from __future__ import annotations

import os

DEVICE = os.environ.get("OPWRIGHT_TESTS_DEVICE", "cuda")
"""The GPU; "cpu" rehearses the tests without one, with OPWRIGHT_CUDA_ON_HOST=1."""

RUNG = "cuda"
