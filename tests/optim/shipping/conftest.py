import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def definitions():
    """The module of the author of optimizers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent / "shipped"))
        yield __import__("definitions")
        del sys.modules["definitions"]
