# SPDX-License-Identifier: Apache-2.0
"""Every test starts with an empty default graph, and with variables by reference: estimators of boosted trees change that for all, as in TensorFlow."""

import sys

import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def empty_graph():
    tf.reset_default_graph()
    tf.disable_resource_variables()
    yield


def pytest_addoption(parser):
    """--letters d-k: the files test_d*.py to test_k*.py, so that several processes share the tests."""
    parser.addoption("--letters", default="0-z")


def pytest_ignore_collect(collection_path, config):
    """Files of other letters."""
    first, last = config.getoption("letters").split("-")
    name = collection_path.name
    return True if name.startswith("test_") and name.endswith(".py") and not first <= name[len("test_")] <= last else None


def pytest_report_teststatus(report, config):
    """Where nobody watches, only what failed is worth a letter: logs are cut in the middle, and dots push out the reasons."""
    if sys.__stdout__.isatty() or config.option.verbose > 0 or report.failed or hasattr(report, "wasxfail"):
        return None
    return (report.outcome, "", "") if report.skipped or report.when == "call" else None
