# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.test_ops: op types that are registered when it is imported. What they answer is what TensorFlow 1.15.5 does."""

import subprocess
import sys

import pytest

import millrace as tf
from millrace.testing import test_ops


def test_they_are_registered_by_the_import_alone():
    program = (
        "import millrace as tf\n"
        "g = tf.Graph()\n"
        "try:\n    g.create_op('FloatOutput', [], [tf.float32])\n"
        "except ValueError as error:\n    print('not registered' in str(error))\n"
        "from millrace.testing import test_ops\n"
        "print(g.create_op('FloatOutput', [], [tf.float32]).outputs[0].dtype.name)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.split() == ["True", "float32"]


def test_their_definitions():
    with tf.Graph().as_default():
        refs = test_ops.ref_output()
        made = test_ops.default_attrs()
        assert refs.dtype.name == "int32_ref" and refs.shape.ndims is None and made.type == "DefaultAttrs"
        assert made.get_attr("shape_val").dim[0].size == 2 and made.get_attr("type_list_val") == [tf.int32, tf.float32]
        assert test_ops.old().op_def.deprecation.version == 8
        d, e = test_ops._op_def_lib.apply_op("Foo1", a=1.0, b=2, c=3, name="twice")
        assert d.op.name == "twice" and e.dtype == tf.int32
        with pytest.raises(RuntimeError, match="Unrecognized Op name Foo4"):
            test_ops._op_def_lib.apply_op("Foo4")


def test_kernels_by_label():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        plain = test_ops.kernel_label()
        with graph._kernel_label_map({"KernelLabel": "overload_1", "KernelLabelRequired": "overload_2"}):
            first, second = test_ops.kernel_label(), test_ops.kernel_label_required([1])
        assert session.run([plain, first, second]) == [b"My label is: default", b"My label is: overload_1", b"My label is: overload_2"]
        assert session.run(test_ops.device_placement_op()) == b"/job:localhost/replica:0/task:0/device:CPU:0"
        assert session.run(test_ops.test_attr(tf.float32)) == 1.0 and plain.shape.ndims == 0
        with pytest.raises(ValueError, match="rank 1"):
            test_ops.kernel_label_required([[1]])
