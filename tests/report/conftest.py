"""A real browser, where there is one."""

import shutil

import pytest

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
)


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium on this machine; install it to test the report page")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Return a function that writes a report and opens it, failing on any error in the page."""
    from exchangeable.report import write_report

    problems = []
    opened = []

    def open_report(model, width=1280, height=900, **options):
        path = tmp_path / "report.html"
        write_report(model, path, **options)
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, reduced_motion="reduce"
        )
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: _check_request(request.url, problems))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(path.as_uri())
        opened.append(context)
        return page

    yield open_report
    for context in opened:
        context.close()
    assert problems == []


def _check_request(url, problems):
    if not url.startswith(("file:", "data:")):
        problems.append(f"the page asked for {url}")
