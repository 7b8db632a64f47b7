# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Millrace for Python, with the names of TensorFlow 1.x: `import millrace as tf`.

Names of TensorFlow 0.x are there too. python/README.md says which module holds what.
"""
import importlib as _importlib
from typing import Any as _Any

from millrace.framework import registry as _registry  # isort: skip - first: it tells the extension module the classes
import millrace._core as _core
from millrace.framework import errors  # noqa: F401
from millrace import namespaces as _namespaces
from millrace.framework import dtypes as _dtypes
from millrace.framework import missing as _missing
from millrace.framework.behavior import *  # noqa: F401,F403
from millrace.framework.composite_tensors import (IndexedSlices, IndexedSlicesValue, SparseTensor, SparseTensorValue,  # noqa: F401
                                                  convert_to_tensor_or_indexed_slices, convert_to_tensor_or_sparse_tensor)
from millrace.framework.convert import (constant, convert_to_tensor, register_tensor_conversion_function)  # noqa: F401
from millrace.framework.device import DeviceSpec  # noqa: F401
from millrace.framework.dtypes import *  # noqa: F401,F403
from millrace.framework.dtypes import DType, as_dtype  # noqa: F401
from millrace.framework.errors import OpError  # noqa: F401
from millrace.framework.graph import (Graph, GraphKeys, Operation, Tensor, add_to_collection, add_to_collections, colocate_with,  # noqa: F401
                                      container, control_dependencies, device, get_collection, get_collection_ref, get_default_graph,
                                      init_scope, name_scope, op_scope, reset_default_graph)
from millrace.framework.importer import import_graph_def  # noqa: F401
from millrace.framework.random_seed import get_seed, set_random_seed  # noqa: F401
from millrace.framework.session import (InteractiveSession, Session, get_default_session,  # noqa: F401
                                        register_session_run_conversion_functions)
from millrace.framework.tensor_shape import Dimension, TensorShape, scalar, unknown_shape  # noqa: F401
from millrace.ops import gen_ops as _gen_ops
from millrace.ops import operators as _operators  # noqa: F401
from millrace.ops.array_ops import *  # noqa: F401,F403
from millrace.ops.check_ops import *  # noqa: F401,F403
from millrace.ops.confusion_matrix import confusion_matrix  # noqa: F401
from millrace.ops.control_flow_ops import *  # noqa: F401,F403
from millrace.ops.derived_ops import *  # noqa: F401,F403
from millrace.ops.functional_ops import *  # noqa: F401,F403
from millrace.ops.gradients import (AggregationMethod, NoGradient, NotDifferentiable, RegisterGradient, custom_gradient,  # noqa: F401
                                    gradients, hessians)
from millrace.ops.init_ops import *  # noqa: F401,F403
from millrace.ops.linalg_ops import *  # noqa: F401,F403
from millrace.ops.lookup_ops import initialize_all_tables, tables_initializer  # noqa: F401
from millrace.ops.math_ops import *  # noqa: F401,F403
from millrace.ops.parsing_ops import *  # noqa: F401,F403
from millrace.ops.queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue  # noqa: F401
from millrace.ops.accumulators import ConditionalAccumulator, ConditionalAccumulatorBase, SparseConditionalAccumulator  # noqa: F401
from millrace.ops.staging import StagingArea  # noqa: F401
from millrace.ops.random_ops import *  # noqa: F401,F403
from millrace.ops.readers import *  # noqa: F401,F403
from millrace.ops.script_ops import *  # noqa: F401,F403
from millrace.ops.sparse_math_ops import *  # noqa: F401,F403
from millrace.ops.sparse_ops import *  # noqa: F401,F403
from millrace.ops.string_ops import *  # noqa: F401,F403
from millrace.ops.template import make_template  # noqa: F401
from millrace.ops.tensor_array_ops import TensorArray  # noqa: F401
from millrace.ops.partitioned_variables import *  # noqa: F401,F403
from millrace.ops.variable_scope import (AUTO_REUSE, VariableScope, get_local_variable, get_variable, get_variable_scope,  # noqa: F401
                                         no_regularizer_scope, variable_op_scope, variable_scope)
from millrace.ops.variables import *  # noqa: F401,F403
from millrace.ops.variables import Variable  # noqa: F401

for _name, _value in list(globals().items()):  # modules that came along with a star, such as Python's math
    if isinstance(_value, type(_dtypes)) and not _name.startswith("_") and _value.__name__ != "millrace." + _name and _value is not errors:
        del globals()[_name]

bool = _dtypes.bool_  # noqa: A001 - TensorFlow's name
__version__ = VERSION = "1.15.0"
version = _core.version()
GIT_VERSION = COMPILER_VERSION = "millrace " + version
GRAPH_DEF_VERSION, QUANTIZED_DTYPES = 134, _dtypes.QUANTIZED_DTYPES
newaxis = None

# Ops whose function is the generated one.
_GENERATED = (
    "acos acosh angle asin asinh atan atan2 atanh approximate_equal batch_to_space batch_to_space_nd bitcast broadcast_to ceil "
    "check_numerics cholesky cos cosh cross decode_base64 decode_raw depth_to_space diag diag_part digamma "
    "dynamic_partition dynamic_stitch encode_base64 ensure_shape erf erfc exp expm1 extract_image_patches fake_quant floor "
    "gather_nd greater greater_equal identity_n igamma igammac inv invert_permutation is_finite is_inf is_nan less less_equal lgamma "
    "log log1p logical_and logical_not logical_or matrix_band_part matrix_determinant matrix_diag matrix_diag_part "
    "matrix_inverse matrix_set_diag matrix_solve matrix_triangular_solve polygamma prevent_gradient quantize read_file "
    "reciprocal rint rsqrt scatter_nd segment_max segment_mean segment_min segment_prod segment_sum sign sin sinh space_to_batch "
    "space_to_batch_nd space_to_depth sparse_segment_mean sparse_segment_sqrt_n sparse_segment_sum sqrt square squared_difference "
    "stop_gradient string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong tan unique_with_counts unsorted_segment_max unsorted_segment_min "
    "unsorted_segment_prod unsorted_segment_sum write_file zeta parallel_stack scatter_max scatter_min roll matching_files "
    "betainc matrix_logarithm mirror_pad xlogy xdivy div_no_nan stateless_random_normal stateless_random_uniform stateless_truncated_normal "
    "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift").split()
for _name in _GENERATED:
    if _name not in globals() and hasattr(_gen_ops, _name):
        globals()[_name] = getattr(_gen_ops, _name)
inv = reciprocal  # type: ignore[name-defined]  # noqa: F821
where_v2 = _gen_ops.select_v2

_missing.fill(globals(), "", {
    "sparse_matmul": "tf.matmul",
    "load_op_library": "a plugin of Millrace (TF_LoadLibrary)",
    "ReplicaDeviceSetter": "tf.device",
})


# Submodules that are loaded when they are first asked for.
_LAZY = {name: "millrace." + name for name in (
    "app", "compat", "contrib", "data", "examples", "feature_column", "flags", "gfile", "graph_util", "image", "initializers", "keras", "layers",
    "linalg", "losses", "metrics", "nn", "python_io", "resource_loader", "saved_model", "sets", "summary", "test", "train", "user_ops", "estimator",
    "distributions", "models", "python", "sysconfig", "spectral", "strings", "math", "random", "io", "sparse", "dtypes", "debugging", "bitwise",
    "queue", "manip", "lookup", "audio")}
_LAZY["logging"] = "millrace.tf_logging"
_FROM = {  # name: module that has it
    "scalar_summary": "summary", "histogram_summary": "summary", "image_summary": "summary",
    "merge_summary": "summary:merge", "merge_all_summaries": "summary:merge_all",
    "GraphDef": "protos.definitions", "NodeDef": "protos.definitions", "OpDef": "protos.definitions", "ConfigProto": "protos.definitions",
    "GPUOptions": "protos.definitions", "GraphOptions": "protos.definitions", "OptimizerOptions": "protos.definitions",
    "RunOptions": "protos.definitions", "RunMetadata": "protos.definitions", "Summary": "protos.definitions", "Event": "protos.definitions",
    "SummaryMetadata": "protos.definitions", "HistogramProto": "protos.definitions", "AttrValue": "protos.definitions",
    "MetaGraphDef": "protos.definitions", "TensorInfo": "protos.definitions", "SessionLog": "protos.definitions", "LogMessage": "protos.definitions",
    "NameAttrList": "protos.definitions",
}


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        try:
            value: _Any = _importlib.import_module(_LAZY[name])
        except ModuleNotFoundError as error:
            if error.name != _LAZY[name]:
                raise
            value = _namespaces.find(name)
            if value is None:
                raise AttributeError("tf.%s is not provided by Millrace" % name) from None
    elif name in _FROM:
        module, _, attribute = _FROM[name].partition(":")
        value = getattr(_importlib.import_module("millrace." + module), attribute or name)
    else:
        raise errors.at_user_line(AttributeError("module 'millrace' has no attribute %r. If TensorFlow 1.x has it, it is not provided yet; "
                                                 "python/README.md says how to add it." % name))
    globals()[name] = value
    return value
