"""Rules for the whole suite."""

from __future__ import annotations

import os

import pytest

from tests.skips import CANNOT


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def] # a generator of pluggy's own kind
    """Under CI=true a test that was skipped has failed, unless by `cannot_here`: what CI does not run, nobody runs."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and CANNOT in str(report.longrepr):
        return
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped under CI: {report.longrepr[-1]}"
