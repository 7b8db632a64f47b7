# SPDX-License-Identifier: Apache-2.0
"""Every test starts with an empty default graph, and leaves nothing behind in the accelerator's memory."""

import gc

import pytest

import accelerator
import millrace as tf


@pytest.fixture(autouse=True)
def nothing_is_left():
    tf.reset_default_graph()
    accelerator.delays(0)
    with tf.Session() as session:  # opens the devices
        session.run(tf.no_op())
    yield
    accelerator.delays(0)
    accelerator.fail_late("")
    gc.collect()
    assert [accelerator.bytes_in_use(0), accelerator.bytes_in_use(1)] == [0, 0]
