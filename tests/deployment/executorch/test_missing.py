"""A package that is there and cannot be imported, as one without the packages that it needs."""

import pytest

from opwright.deployment.executorch import program
from opwright.errors import ToolMissing


def test_what_cannot_be_imported_ends_in_a_sentence():
    with pytest.raises(ToolMissing, match="cannot be imported: No module named 'executorch_of_no_version'"):
        program._imported("executorch_of_no_version")
