# SPDX-License-Identifier: Apache-2.0
"""Every test starts with an empty default graph."""

import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def empty_graph():
    tf.reset_default_graph()
    yield
