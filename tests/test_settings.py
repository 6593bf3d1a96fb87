from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opwright.settings import Settings

HOME = {"XDG_CACHE_HOME": "/home/me/.cache"}


@pytest.mark.parametrize(
    ("environment", "attribute", "value"),
    [
        ({}, "cache_directory", Path("/home/me/.cache/opwright")),
        ({"OPWRIGHT_CACHE": "/c"}, "cache_directory", Path("/c")),
        ({"CXX": "ccache g++"}, "compiler", "ccache g++"),
        ({"CXX": ""}, "compiler", None),
        ({}, "color", True),
        ({"NO_COLOR": ""}, "color", False),
        ({"OPWRIGHT_QUIET": "1"}, "notify", False),
        ({"OPWRIGHT_TAPE": "off"}, "tape", "off"),
        ({"OPWRIGHT_TAPE": "nonsense"}, "tape", "background"),
        ({}, "cuda_home", None),
        ({"CUDA_HOME": "/cuda"}, "cuda_home", Path("/cuda")),
        ({"CUDA_PATH": "/path"}, "cuda_home", Path("/path")),
        ({"CUDA_HOME": "/cuda", "CUDA_PATH": "/path"}, "cuda_home", Path("/cuda")),
        ({"TORCH_CUDA_ARCH_LIST": "8.0 9.0"}, "cuda_architectures", "8.0 9.0"),
        ({"TORCH_CUDA_ARCH_LIST": ""}, "cuda_architectures", None),
        ({"MAX_JOBS": "3"}, "job_limit", 3),
        ({"MAX_JOBS": "0"}, "job_limit", None),
        ({"MAX_JOBS": "many"}, "job_limit", None),
        ({}, "cache_limit_bytes", 5_000_000_000),
        ({}, "patience_s", 30.0),
        ({"OPWRIGHT_PATIENCE": "2.5"}, "patience_s", 2.5),
        ({"OPWRIGHT_PATIENCE": "0"}, "patience_s", 0.0),
        ({"OPWRIGHT_PATIENCE": "Unlimited"}, "patience_s", None),
        ({"OPWRIGHT_PATIENCE": "inf"}, "patience_s", None),
        ({"OPWRIGHT_PATIENCE": "-1"}, "patience_s", 30.0),
        ({"OPWRIGHT_PATIENCE": "nan"}, "patience_s", 30.0),
        ({"OPWRIGHT_PATIENCE": "a minute"}, "patience_s", 30.0),
        ({"OPWRIGHT_CACHE_LIMIT": "500 MB"}, "cache_limit_bytes", 500_000_000),
        ({"OPWRIGHT_CACHE_LIMIT": "1.5GiB"}, "cache_limit_bytes", 3 << 29),
        ({"OPWRIGHT_CACHE_LIMIT": "20g"}, "cache_limit_bytes", 20_000_000_000),
        ({"OPWRIGHT_CACHE_LIMIT": "4096"}, "cache_limit_bytes", 4096),
        ({"OPWRIGHT_CACHE_LIMIT": "None"}, "cache_limit_bytes", None),
        ({"OPWRIGHT_CACHE_LIMIT": "five apples"}, "cache_limit_bytes", 5_000_000_000),
        ({}, "torch_extensions", Path("/home/me/.cache/torch_extensions")),
        ({"TORCH_EXTENSIONS_DIR": "/t"}, "torch_extensions", Path("/t")),
    ],
)
def test_the_environment_says(environment: dict[str, str], attribute: str, value: Any) -> None:
    assert getattr(Settings.from_environment({**HOME, **environment}), attribute) == value
