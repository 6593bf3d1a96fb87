import pytest

from tests.projects.standalone import make_standalone


@pytest.fixture(scope="session")
def standalone(tmp_path_factory):
    return make_standalone(tmp_path_factory.mktemp("standalone"))
