import pytest

from tests.projects.standalone import Standalone, make_environment, variables


@pytest.fixture(scope="session")
def standalone():
    return Standalone(variables())


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """The same in an environment of its own, at night."""
    return make_environment(tmp_path_factory.mktemp("standalone"))
