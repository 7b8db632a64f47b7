# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.kernels, the devices of sessions, and where messages of context managers say that the program is."""

import os

import pytest

import millrace as tf
from millrace.framework import kernels
from millrace.framework.session import _DeviceAttributes


def test_kernels_that_are_registered():
    found = kernels.get_registered_kernels_for_op("MatMul").kernel
    assert {k.op for k in found} == {"MatMul"} and "CPU" in {k.device_type for k in found}
    types = [t for k in found for c in k.constraint if c.name == "T" for t in c.allowed_values.list.type]
    assert tf.float32.as_datatype_enum in types
    assert len(kernels.get_all_registered_kernels().kernel) > 1000 and not kernels.get_registered_kernels_for_op("NoSuchOp").kernel


def test_devices_tell_when_they_were_started():
    with tf.Session() as session:
        assert all(device.incarnation for device in session.list_devices())
    attributes = _DeviceAttributes("/job:worker/replica:0/task:3/cpu:1", "TYPE", 1337, 1000000)
    assert attributes.name == "/job:worker/replica:0/task:3/device:CPU:1" and attributes.incarnation == 1000000
    assert str(attributes) == "_DeviceAttributes(/job:worker/replica:0/task:3/device:CPU:1, TYPE, 1337, 1000000)"


def test_scopes_with_mistakes_name_the_line_of_the_program():
    with pytest.raises(ValueError, match=r"is not a valid scope name. At .*%s:\d+$" % os.path.basename(__file__)):
        with tf.Graph().as_default(), tf.Graph().name_scope("a name"):
            pass
    with tf.device("/cpu:0"):
        made = tf.constant(1)
    assert [os.path.basename(entry.filename) for entry in made.op._device_assignments] == [os.path.basename(__file__)]
