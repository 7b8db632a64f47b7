# SPDX-License-Identifier: Apache-2.0
"""Every test starts with an empty default graph, and with variables by reference: estimators of boosted trees change that for all, as in TensorFlow."""

import pytest

import millrace as tf


@pytest.fixture(autouse=True)
def empty_graph():
    tf.reset_default_graph()
    tf.disable_resource_variables()
    yield
