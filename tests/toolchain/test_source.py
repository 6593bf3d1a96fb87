from __future__ import annotations

import pytest

from opwright.errors import InternalError
from opwright.toolchain.source import Source


@pytest.mark.parametrize("name", ["", "1st", "a-b", "../a", "a.cpp", "größe", "a\n"])
def test_a_name_must_be_an_identifier(name: str) -> None:
    with pytest.raises(InternalError, match="C identifier"):
        Source(name, "")
