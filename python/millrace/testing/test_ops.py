# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.test_ops: op types that TensorFlow has for its own tests alone. Importing this module adds them to the process's
registry by the C API, as a library of ops would (docs/custom_ops.md); until then no graph can have them. Those that TensorFlow's tests run have
kernels, as long as one can be made that way: a kernel is not told the version of its graph, and makes no resources."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, List

from millrace.framework.graph import Graph
from millrace.framework.load_library import op_function, snake_case
from millrace.framework.op_def_library import OpDefLibrary
from millrace.framework.op_def_registry import c_function as _c, checked as _checked, define, delete_status as _delete_status, new_status as _new_status
from millrace.protos import definitions

# Name | inputs | outputs | attributes | stateful; a line that begins with spaces goes on with the one before.
_OPS = """
A | | out: float
Attr | | | a: int
AttrBool | | | a: bool
AttrBoolList | | | a: list(bool)
AttrDefault | | | a: string = 'banana'
AttrEmptyListDefault | | | a: list(float) = []
AttrEnum | | | a: {'apples', 'oranges'}
AttrEnumList | | | a: list({'apples', 'oranges'})
AttrFloat | | | a: float
AttrListDefault | | | a: list(int) = [5, 15]
AttrListMin | | | a: list(int) >= 2
AttrListTypeDefault | a: N * T; b: N * T | | T: type = int32; N: int >= 1
AttrMin | | | a: int >= 5
AttrPartialShape | | | a: shape
AttrPartialShapeList | | | a: list(shape)
AttrShape | | | a: shape
AttrShapeList | | | a: list(shape)
AttrTypeDefault | a: T | | T: type = int32
B | | out: float
Binary | a: T; b: T | out: T | T: type
ComplexStruct | | a: n_a * int32; b: n_b * int64; c: t_c | n_a: int >= 0; n_b: int >= 0; t_c: list(type) >= 0
CopyOp | a: T | b: T | T: type
DefaultAttrs | | | string_val: string = 'abc'; string_list_val: list(string) = ['abc', '']; int_val: int = 123; int_list_val: list(int) =
    [1, 2, 3]; float_val: float = 10; float_list_val: list(float) = [10]; bool_val: bool = true; bool_list_val: list(bool) = [true, false];
    type_val: type = int32; type_list_val: list(type) = [int32, float]; shape_val: shape = { dim { size: 2 } dim { size: 1 } };
    shape_list_val: list(shape) = [{ }, { dim { size: 1 } }]; tensor_val: tensor = { dtype: DT_INT32 tensor_shape { } int_val: 1 };
    tensor_list_val: list(tensor) = [{ dtype: DT_INT32 tensor_shape { } int_val: 1 }]
DevicePlacementOp | | device: string | | stateful
FiveFloatOutputs | | a: float; b: float; c: float; d: float; e: float
FloatInput | a: float
FloatOutput | | a: float
FloatOutputStringOutput | | a: float; b: string
Foo1 | a: float; b: int32; c: int32 | d: float; e: int32
Foo2 | a: float; b: string; c: string | d: float; e: int32
Foo3 | a: float; b: string; c: float | d: float; e: int32
FuncAttr | | | f: func
FuncListAttr | | | f: list(func)
GraphDefVersion | | version: int32 | | stateful
InPolymorphicTwice | a: N * T; b: M * T | | T: type; N: int >= 0; M: int >= 0
Int64Output | | out: int64
IntAttr | | out: int64 | foo: int = 1
IntInput | a: int32
IntInputFloatInput | a: int32; b: float
IntInputIntOutput | a: int32 | b: int32
IntOutput | | a: int32
IntOutputFloatOutput | | a: int32; b: float
KernelLabel | | result: string
KernelLabelRequired | input: int32 | result: string
ListInput | a: N * T | | N: int >= 1; T: type
ListOutput | | a: T | T: list(type) >= 1
MixedStruct | | a: n_a * int32; b: float | n_a: int >= 0
NInPolymorphicTwice | a: N * T; b: N * T | | T: type; N: int >= 0
NInTwice | a: N * int32; b: N * string | | N: int >= 0
NInTwoTypeVariables | a: N * S; b: N * T | | S: type; T: type; N: int >= 0
NIntsIn | a: N * int32 | | N: int >= 2
NIntsOut | | a: N * int32 | N: int >= 2
NIntsOutDefault | | a: N * int32 | N: int >= 2 = 3
NPolymorphicIn | a: N * T | | T: type; N: int >= 2
NPolymorphicOut | | a: N * T | T: type; N: int >= 2
NPolymorphicOutDefault | | a: N * T | T: type = bool; N: int >= 2 = 2
NPolymorphicRestrictIn | a: N * T | | T: {string, bool}; N: int >= 2
NPolymorphicRestrictOut | | a: N * T | T: {string, bool}; N: int >= 2
None
Old
OpWithDefaultAttr | | a: int32 | default_float: float = 123
OpWithFutureDefaultAttr
OutT | | a: T | T: type
OutTypeList | | out: T | T: list(type) >= 0
OutTypeListRestrict | | out: t | t: list({string, bool}) >= 1
Polymorphic | a: T | out: T | T: type
PolymorphicDefaultOut | | out: T | T: type = string
PolymorphicOut | | out: T | T: type
RefIn | a: Ref(T) | | T: type
RefInputFloatInput | a: Ref(float); b: float
RefInputFloatInputIntOutput | a: Ref(float); b: float | c: int32
RefInputIntInput | a: Ref(int32); b: int32
RefOut | | a: Ref(T) | T: type
RefOutput | | a: Ref(int32)
RefOutputFloatOutput | | a: Ref(float); b: float
ReservedAttr | | | range: int
ReservedInput | input: int32
ResourceCreateOp | resource: resource | | | stateful
ResourceInitializedOp | resource: resource | initialized: bool | | stateful
ResourceUsingOp | resource: resource | | | stateful
Restrict | a: T | out: T | T: {string, bool}
ShapelessOp
Simple | a: int32 | out: float
SimpleStruct | | a: n_a * int32 | n_a: int >= 0
StringListAttr | | | a: list(string); b: string
StubResourceHandleOp | | resource: resource | container: string = ''; shared_name: string = '' | stateful
TestAttr | | out: T | T: {float, double}
TestStringOutput | input: float | output1: float; output2: string
TwoFloatInputs | a: float; b: float
TwoFloatInputsFloatOutput | a: float; b: float | c: float
TwoFloatInputsIntOutput | a: float; b: float | c: int32
TwoFloatOutputs | | a: float; b: float
TwoIntInputs | a: int32; b: int32
TwoIntOutputs | | a: int32; b: int32
TwoRefsIn | a: Ref(T); b: Ref(T) | | T: type
TypeList | a: T | | T: list(type) >= 0
TypeListRestrict | a: T | | T: list({string, bool}) >= 1
TypeListTwice | a: T; b: T | | T: list(type) >= 0
Unary | a: T | b: T | T: type
"""
_SCALARS = ("DevicePlacementOp", "GraphDefVersion", "KernelLabel", "KernelLabelRequired", "ResourceInitializedOp", "StubResourceHandleOp")
_DEPRECATED = {"Old": (8, b"For reasons")}  # from which version of graphs on, and why

_PTR, _TEXT, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_kept: List[Any] = []  # functions that the library calls


class _StringView(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]


_code = _c("TF_GetCode", _INT, _PTR)
_deprecated = _c("TF_OpDefinitionBuilderDeprecated", None, _PTR, _INT, _TEXT)
_set_shape = _c("TF_OpDefinitionBuilderSetShapeInferenceFunction", None, _PTR, _PTR)
_new_shape, _delete_shape = _c("TF_NewShapeHandle", _PTR), _c("TF_DeleteShapeHandle", None, _PTR)
_num_inputs = _c("TF_ShapeInferenceContextNumInputs", ctypes.c_int64, _PTR)
_shape_of = _c("TF_ShapeInferenceContextGetInput", None, _PTR, _INT, _PTR, _PTR)
_with_rank = _c("TF_ShapeInferenceContextWithRank", None, _PTR, _PTR, ctypes.c_int64, _PTR, _PTR)
_scalar = _c("TF_ShapeInferenceContextScalar", _PTR, _PTR)
_set_output = _c("TF_ShapeInferenceContextSetOutput", None, _PTR, _INT, _PTR, _PTR)
_new_kernel = _c("TF_NewKernelBuilder", _PTR, _TEXT, _TEXT, _PTR, _PTR, _PTR)
_label, _register_kernel = _c("TF_KernelBuilder_Label", None, _PTR, _TEXT), _c("TF_RegisterKernelBuilder", None, _TEXT, _PTR, _PTR)
_constraint = _c("TF_KernelBuilder_TypeConstraint", None, _PTR, _TEXT, _INT, _PTR)
_device_name = _c("TF_GetDeviceName", _StringView, _PTR)
_allocate = _c("TF_AllocateOutput", _PTR, _PTR, _INT, _INT, _PTR, _INT, ctypes.c_size_t, _PTR)
_data, _delete_tensor = _c("TF_TensorData", _PTR, _PTR), _c("TF_DeleteTensor", None, _PTR)
_copy_string = _c("TF_StringCopy", None, _PTR, _TEXT, ctypes.c_size_t)
_fail = _c("TF_OpKernelContext_Failure", None, _PTR, _PTR)

_SHAPE_FUNCTION = ctypes.CFUNCTYPE(None, _PTR, _PTR)
_COMPUTE_FUNCTION = ctypes.CFUNCTYPE(None, _PTR, _PTR)


def _scalar_shape(context: int, status: int) -> None:
    shape = _scalar(context)
    _set_output(context, 0, shape, status)
    _delete_shape(shape)


def _scalar_of_vector(context: int, status: int) -> None:
    given, vector = _new_shape(), _new_shape()
    _shape_of(context, 0, given, status)
    _with_rank(context, given, 1, vector, status)
    if _code(status) == 0:
        _scalar_shape(context, status)
    _delete_shape(given)
    _delete_shape(vector)


def _register(line: str) -> str:
    """The name of the op that a line of _OPS says, which it registers."""
    name, *parts = [part.strip() for part in line.split("|")]

    def more(builder: int) -> None:
        if name in _DEPRECATED:
            _deprecated(builder, *_DEPRECATED[name])
        if name in _SCALARS:
            function = _SHAPE_FUNCTION(_scalar_of_vector if name == "KernelLabelRequired" else _scalar_shape)
            _kept.append(function)
            _set_shape(builder, ctypes.cast(function, _PTR))

    inputs, outputs, attrs = ([spec.strip() for spec in part.split(";") if spec.strip()] for part in (parts + ["", "", ""])[:3])
    define(name, inputs, outputs, attrs, stateful=parts[3:] == ["stateful"], more=more)
    return name


def _kernel(op: str, compute: Any, label: str = "", float_only: bool = False) -> None:
    """Registers a kernel of an op."""
    called = _COMPUTE_FUNCTION(compute)
    _kept.append(called)
    builder = _new_kernel(op.encode(), b"CPU", None, ctypes.cast(called, _PTR), None)
    if label:
        _label(builder, label.encode())
    if float_only:
        _checked(lambda status: _constraint(builder, b"T", 1, status))
    _checked(lambda status: _register_kernel((op + label).encode(), builder, status))


def _scalar_output(context: int, dtype: int, size: int, write: Callable[[int], None]) -> None:
    """Has the only output of a kernel written, a scalar."""
    status = _new_status()
    tensor = _allocate(context, 0, dtype, None, 0, size, status)
    if tensor:
        write(_data(tensor))
        _delete_tensor(tensor)
    else:
        _fail(context, status)
    _delete_status(status)


def _writes(text: Callable[[int], bytes]) -> Callable[[Any, int], None]:
    """A kernel whose output is text(context)."""

    def compute(unused: Any, context: int) -> None:
        value = text(context)
        _scalar_output(context, 7, 24, lambda place: _copy_string(place, value, len(value)))

    return compute


def _device(context: int) -> bytes:
    view = _device_name(context)
    return ctypes.string_at(view.data, view.length)


def _one(unused: Any, context: int) -> None:
    def write(place: int) -> None:
        ctypes.c_float.from_address(place).value = 1.0

    _scalar_output(context, 1, 4, write)


def _nothing(unused: Any, context: int) -> None:
    """Computes nothing."""


def _says(label: str) -> Callable[[Any, int], None]:
    return _writes(lambda context: b"My label is: " + label.encode())


_op_def_lib = OpDefLibrary()
for _name in [_register(line) for line in _OPS.strip().replace("\n    ", " ").split("\n")]:
    globals()[snake_case(_name)] = op_function(definitions.OpDef.FromString(Graph()._op_def(_name)))
_kernel("KernelLabel", _says("default"))
for _overload in ("overload_1", "overload_2"):
    _kernel("KernelLabel", _says(_overload), _overload)
    _kernel("KernelLabelRequired", _says(_overload), _overload)
_kernel("DevicePlacementOp", _writes(_device))
_kernel("TestAttr", _one, float_only=True)
_kernel("Old", _nothing)
