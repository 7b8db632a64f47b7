# SPDX-License-Identifier: Apache-2.0
"""OpDefLibrary.apply_op and ApiDefMap: operations by the names of their types, and how these are shown. Messages are those of TensorFlow 1.15.5."""

import pytest

import millrace as tf
from millrace.framework import c_api_util, function, op_def_registry
from millrace.framework.op_def_library import OpDefLibrary
from millrace.protos import definitions
from millrace.testing import test_ops  # noqa: F401  (registers op types)

library = OpDefLibrary()


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def refused(kind, op, **keywords):
    with pytest.raises(kind) as caught:
        library.apply_op(op, **keywords)
    return str(caught.value)


def strings(count):
    return [library.apply_op("OutT", T=tf.string) for _ in range(count)]


def test_inputs_are_named_and_typed():
    made = library.apply_op("NPolymorphicIn", a=[1, tf.constant(2.0, name="x")], name="q")
    assert [i.name for i in made.inputs] == ["q/a_0:0", "x:0"] and made.get_attr("T") == tf.float32 and made.get_attr("N") == 2
    assert library.apply_op("ReservedInput", input_=7).inputs[0].op.name == "ReservedInput/input"
    assert library.apply_op("ReservedAttr", range_=7).get_attr("range") == 7
    assert library.apply_op("AttrTypeDefault", a=[]).get_attr("T") == tf.int32
    ref = library.apply_op("RefOut", T=tf.bool, name="o")
    assert library.apply_op("RefIn", a=ref).get_attr("_class") == [b"loc:@o"]


def test_inputs_of_wrong_types():
    assert refused(TypeError, "Simple", a="word").startswith("Expected int32 passed to parameter 'a' of op 'Simple', got 'word' of type 'str' instead.")
    assert refused(TypeError, "Simple", a=strings(1)[0]) == "Input 'a' of 'Simple' Op has type string that does not match expected type of int32."
    assert (
        refused(TypeError, "Binary", a=tf.constant(1), b=strings(1)[0])
        == "Input 'b' of 'Binary' Op has type string that does not match type int32 of argument 'a'."
    )
    assert refused(TypeError, "Restrict", a=17) == "Value passed to parameter 'a' has DataType int32 not in list of allowed values: string, bool"
    assert refused(TypeError, "RefIn", a=2) == "'RefIn' Op requires that input 'a' be a mutable tensor (e.g.: a tf.Variable)"
    begin = "Tensors in list passed to 'a' of '%s' Op have types "
    assert refused(TypeError, "NIntsIn", a=[1, "word"]) == begin % "NIntsIn" + "[int32, string] that do not match expected type int32."
    assert refused(TypeError, "NPolymorphicIn", a=[1, None]) == begin % "NPolymorphicIn" + "[int32, <NOT CONVERTIBLE TO TENSOR>] that don't all match."
    assert refused(TypeError, "TypeList", a=[tf.constant(1), None]).startswith(begin % "TypeList" + "[int32, <NOT CONVERTIBLE TO TENSOR>] that are invalid.")
    begin = "Tensors in list passed to 'b' of 'InPolymorphicTwice' Op have types "
    assert (
        refused(TypeError, "InPolymorphicTwice", a=[1], b=strings(2))
        == begin + "[string, string] that do not match type int32 inferred from earlier arguments."
    )
    assert refused(TypeError, "TypeListTwice", a=["a", True], b=["b", 6]) == (
        "Input 'b' of 'TypeListTwice' Op has type list of string, int32 that does not match type list string, bool of argument 'a'."
    )


def test_lists_of_wrong_lengths():
    assert refused(TypeError, "NIntsIn", a=17) == "Expected list for 'a' argument to 'NIntsIn' Op, not 17."
    assert refused(ValueError, "NIntsIn", a=[99]) == "List argument 'a' to 'NIntsIn' Op with length 1 shorter than minimum length 2."
    assert refused(ValueError, "NInTwice", a=[1, 2], b=["one"]) == "List argument 'b' to 'NInTwice' Op with length 1 must match length 2 of argument 'a'."
    assert refused(TypeError, "InPolymorphicTwice", a=[], b=[3]) == (
        "Don't know how to infer type variable from empty input list passed to input 'a' of 'InPolymorphicTwice' Op."
    )


def test_wrong_attributes():
    assert refused(TypeError, "Attr", a="bad") == "Expected int for argument 'a' not 'bad'."
    assert refused(TypeError, "AttrBool", a=1) == "Expected bool for argument 'a' not 1."
    assert refused(TypeError, "AttrFloat", a=None) == "Expected float for argument 'a' not None."
    assert refused(TypeError, "PolymorphicOut", T=None) == "Expected DataType for argument 'T' not None."
    assert refused(TypeError, "OutTypeList", T=tf.int32) == "Expected list for attr T"
    assert refused(TypeError, "FuncAttr", f=3) == "Don't know how to convert 3 to a func for argument f"
    assert refused(ValueError, "AttrMin", a=2) == "Attr 'a' of 'AttrMin' Op passed 2 less than minimum 5."
    assert refused(ValueError, "AttrListMin", a=[17]) == "Attr 'a' of 'AttrListMin' Op passed list of length 1 less than minimum 2."
    assert refused(ValueError, "AttrEnum", a="pears") == "Attr 'a' of 'AttrEnum' Op passed string 'pears' not in: \"apples\", \"oranges\"."
    assert refused(TypeError, "AttrShape", a="ABC").startswith("Error converting a to a TensorShape: ")
    assert refused(TypeError, "Polymorphic", a="s", T=tf.string) == "Should not specify value for inferred attr 'T'."
    assert refused(TypeError, "Attr") == "No argument for attr a" and refused(TypeError, "Simple", wrong=7) == "No argument for input a"
    assert refused(TypeError, "Simple", a=6, y=1, x=2) == "apply_op() got unexpected keyword arguments: x, y"
    assert refused(RuntimeError, "Foo4") == "Unrecognized Op name Foo4"


def test_functions_as_attributes(graph):
    @function.Defun(tf.float32, func_name="MyFn")
    def my_function(x):
        return x + 2

    made = library.apply_op("FuncListAttr", f=[my_function, my_function])
    assert [f.name for f in made.node_def.attr["f"].list.func] == ["MyFn", "MyFn"] and graph.as_graph_def().library.function[0].signature.name == "MyFn"


def test_outputs_have_the_form_of_the_definition():
    assert [len(library.apply_op("SimpleStruct", n_a=n)) for n in (0, 1, 3)] == [0, 1, 3] and library.apply_op("OutTypeList", T=[]) == []
    a, b, c = library.apply_op("ComplexStruct", n_a=0, n_b=2, t_c=[tf.bool])
    assert (a, len(b), [t.dtype for t in c]) == ([], 2, [tf.bool])
    with tf.Session() as session:
        assert session.run(library.apply_op("MatMul", a=[[1.0, 2.0]], b=[[3.0], [4.0]], name="product")) == [[11]]


def test_definitions_that_contradict_themselves():
    op_def = definitions.OpDef(name="Mine", input_arg=[definitions.OpDef.ArgDef(name="a", type_attr="T")])
    with pytest.raises(TypeError, match="Inconsistent OpDef for 'Mine', missing attr 'T'"):
        library.add_op(op_def)
    op_def.attr.add(name="T", type="int")
    with pytest.raises(TypeError, match="Attr 'T' of 'Mine' used as a type_attr but has type int"):
        library.add_op_list(definitions.OpList(op=[op_def]))
    op_def.input_arg[0].type_attr = ""
    with pytest.raises(TypeError, match="Arg 'a' of 'Mine' must have one type field not 0"):
        library.add_op(op_def)


def test_how_ops_are_shown():
    shown = c_api_util.ApiDefMap()
    assert set(shown.op_names()) == set(op_def_registry.get_registered_ops()) and shown.get_op_def("Add").input_arg[1].name == "y"
    shown.put_api_def('op { graph_op_name: "Add" visibility: HIDDEN summary: <<END\nThe sum.\nEND\n endpoint { name: "plus" } }')
    made = shown.get_api_def("Add")
    assert (made.graph_op_name, made.summary, made.endpoint[0].name) == ("Add", "The sum.", "plus") and "visibility: HIDDEN" in str(made)
    for call in (lambda: shown.get_api_def("Nope"), lambda: shown.get_op_def("Nope"), lambda: shown.put_api_def("")):
        with pytest.raises(ValueError, match="No entry found for Nope|cannot be called after"):
            call()
