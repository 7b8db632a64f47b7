# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.test_ops: op types that are registered when it is imported. What they answer is what TensorFlow 1.15.5 does."""

import subprocess
import sys

import pytest

import millrace as tf
from millrace.framework import op_def_registry
from millrace.protos import definitions, text_format
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


def test_a_registered_list_of_definitions():
    op_list = definitions.OpList()
    text_format.Merge(
        """op { name: 'PyA' input_arg { name: 'a' number_attr: 'N' type_attr: 'T' } input_arg { name: 'r' type: DT_INT32 is_ref: true }
                output_arg { name: 'b' type_list_attr: 'out' } is_stateful: true
                attr { name: 'N' type: 'int' has_minimum: true minimum: 2 default_value { i: 3 } }
                attr { name: 'T' type: 'type' allowed_values { list { type: DT_FLOAT type: DT_INT32 } } }
                attr { name: 'out' type: 'list(type)' has_minimum: true minimum: 1 default_value { list { type: DT_HALF } } }
                attr { name: 's' type: 'string' default_value { s: "a'b\\\\\\n" } }
                attr { name: 'f' type: 'float' default_value { f: 0.1 } } attr { name: 'h' type: 'shape' default_value { shape { dim { size: 2 } } } } }""",
        op_list,
    )
    op_def_registry.register_op_list(op_list)
    op_def_registry.register_op_list(op_list)  # the same again
    registered = op_def_registry.get_registered_ops()
    assert registered["PyA"] == op_list.op[0] and registered["MatMul"].input_arg[0].name == "a"
    op_list.op[0].is_stateful = True
    del op_list.op[0].attr[-1]
    with pytest.raises(ValueError, match="op PyA is registered already, as another"):
        op_def_registry.register_op_list(op_list)
    with pytest.raises(TypeError, match="not an op_def_pb2.OpList"):
        op_def_registry.register_op_list([])
