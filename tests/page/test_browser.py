"""The page in a browser: nothing is said in the console, nothing is cut off, overlaps or sticks out, plots have marks.

Without Chromium and its driver the tests are skipped; a build server must have them. `make browser` runs them alone.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

import opwright.library
from opwright.api.operator import Operator
from opwright.page import gather, render
from tests.suite.nights import mostly_at_night

FACTS = json.loads((Path(__file__).parent / "lltm_cell.json").read_text(encoding="utf-8"))
LOOKING = (Path(__file__).parent / "looking.js").read_text(encoding="utf-8")
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WIDTHS = (400, 900, 1600)
MODES = ("light", "dark")
VIEWS = [(width, mode) for width in WIDTHS for mode in MODES]
LIBRARY = [each for each in vars(opwright.library).values() if isinstance(each, Operator)]

pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER) and os.environ.get("CI") != "true",
    reason="there is no browser: apt-get install chromium chromium-driver",
)


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render(FACTS), encoding="utf-8")
    return file


def show(browser, file, width, mode):
    """Load a page in a window of a width, by day or by night, with all that folds opened."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": mode}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(file.as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.mark.nightly
@pytest.mark.parametrize("operator", LIBRARY, ids=lambda operator: operator.name.rpartition("::")[2])
def test_pages_of_ready_operators_look_well(browser, tmp_path, operator) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(gather(operator).to_json()), encoding="utf-8")
    for width in WIDTHS:
        show(browser, file, width, "light")
        assert browser.get_log("browser") == []
        assert browser.execute_script(LOOKING + "return faults()") == []


@pytest.mark.parametrize(("width", "mode"), mostly_at_night(VIEWS, by_day=[VIEWS[0], VIEWS[-1]]))
def test_the_page_looks_well(browser, page, width, mode) -> None:
    show(browser, page, width, mode)
    assert browser.get_log("browser") == []
    assert browser.execute_script(LOOKING + "return faults()") == []
    marks = browser.execute_script(LOOKING + "return marks()")
    assert len(marks) == 6
    assert all(marks), marks
    assert browser.execute_script(LOOKING + "return pale()") == []


def test_night_is_dark(browser, page) -> None:
    background = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    show(browser, page, 900, "light")
    assert min(browser.execute_script(background)) > 200
    show(browser, page, 900, "dark")
    assert max(browser.execute_script(background)) < 60


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("h1 { width: 3000px }", "wider than the window"),
        (".graph text { font-size: 19px }", "wider than its box"),
        ("#speed { margin-top: -90px }", "overlap"),
        (".plot text { font-size: 44px !important }", "overlap"),
    ],
)
def test_faults_are_found(browser, page, style, fault) -> None:
    show(browser, page, 900, "light")
    browser.execute_script(
        "document.head.appendChild(Object.assign(document.createElement('style'), {textContent: arguments[0]}))", style
    )
    assert any(fault in found for found in browser.execute_script(LOOKING + "return faults()"))


def test_an_error_in_the_console_and_pale_text_are_found(browser, page) -> None:
    show(browser, page, 900, "light")
    browser.execute_script("console.error('wrong'); document.documentElement.style.setProperty('--dim', '#dddddd')")
    assert "wrong" in browser.get_log("browser")[0]["message"]
    assert browser.execute_script(LOOKING + "return pale()")
