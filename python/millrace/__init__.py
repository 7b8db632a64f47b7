# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Millrace for Python, with the names of TensorFlow 1.x: `import millrace as tf`.

Names of TensorFlow 0.x are there too. python/README.md says which module holds what.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import List as _List

from millrace.framework import registry as _registry  # isort: skip - first: it tells the extension module the classes
import millrace._core as _core
from millrace.framework import errors
from millrace import names as _names
from millrace.framework import dispatch as _dispatch
from millrace.framework import dtypes as _dtypes
from millrace.framework import missing as _missing
from millrace.framework.behavior import *  # noqa: F403
from millrace.framework.composite_tensors import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
    convert_to_tensor_or_indexed_slices,
    convert_to_tensor_or_sparse_tensor,
)
from millrace.framework.convert import constant, convert_to_tensor, register_tensor_conversion_function
from millrace.framework.device import DeviceSpec
from millrace.framework.dtypes import *  # noqa: F403
from millrace.framework.dtypes import DType, as_dtype
from millrace.framework.errors import OpError
from millrace.framework.graph import (
    Graph,
    GraphKeys,
    Operation,
    Tensor,
    add_to_collection,
    add_to_collections,
    colocate_with,
    container,
    control_dependencies,
    device,
    get_collection,
    get_collection_ref,
    get_default_graph,
    init_scope,
    name_scope,
    op_scope,
    reset_default_graph,
)
from millrace.framework.importer import import_graph_def
from millrace.framework.load_library import load_file_system_library, load_library, load_op_library
from millrace.framework.random_seed import get_seed, set_random_seed
from millrace.framework.default_session import get_default_session
from millrace.framework.session import InteractiveSession, Session, register_session_run_conversion_functions
from millrace.framework.versions import (
    CXX11_ABI_FLAG,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    MONOLITHIC_BUILD,
    VERSION,
    __version__,
)
from millrace.framework.tensor_shape import Dimension, TensorShape, scalar, unknown_shape
from millrace.ops import gen_ops as _gen_ops
from millrace.ops import operators as _operators
from millrace.ops.array_ops import *  # noqa: F403
from millrace.ops.block_ops import *  # noqa: F403
from millrace.ops.gather_ops import batch_gather, gather, gather_nd
from millrace.ops.check_ops import *  # noqa: F403
from millrace.ops.confusion_matrix import confusion_matrix
from millrace.ops.control_flow_ops import *  # noqa: F403
from millrace.ops.derived_ops import *  # noqa: F403
from millrace.ops.functional_ops import *  # noqa: F403
from millrace.ops.gradients import AggregationMethod, NoGradient, NotDifferentiable, RegisterGradient, custom_gradient, gradients, hessians
from millrace.ops.init_ops import *  # noqa: F403
from millrace.ops.linalg_ops import *  # noqa: F403
from millrace.ops.logging_ops import print
from millrace.ops.sort_ops import argsort, sort
from millrace.ops.lookup_ops import initialize_all_tables, tables_initializer
from millrace.ops.math_ops import *  # noqa: F403
from millrace.ops.matrix_ops import *  # noqa: F403
from millrace.ops.parsing_ops import *  # noqa: F403
from millrace.ops.queues import FIFOQueue, PaddingFIFOQueue, PriorityQueue, QueueBase, RandomShuffleQueue
from millrace.ops.accumulators import ConditionalAccumulator, ConditionalAccumulatorBase, SparseConditionalAccumulator
from millrace.ops.staging import StagingArea
from millrace.ops.session_ops import *  # noqa: F403
from millrace.ops.quantization_ops import *  # noqa: F403
from millrace.ops.band_ops import *  # noqa: F403
from millrace.ops.random_ops import *  # noqa: F403
from millrace.ops.readers import *  # noqa: F403
from millrace.ops.script_ops import *  # noqa: F403
from millrace.ops.sparse_math_ops import *  # noqa: F403
from millrace.ops.sparse_ops import *  # noqa: F403
from millrace.ops.string_ops import *  # noqa: F403
from millrace.ops.tensor_scatter import *  # noqa: F403
from millrace.ops.template import make_template
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.partitioned_variables import *  # noqa: F403
from millrace.ops.variable_scope import (
    AUTO_REUSE,
    VariableScope,
    get_local_variable,
    get_variable,
    get_variable_scope,
    no_regularizer,
    variable_op_scope,
    variable_scope,
)
from millrace.ops.variables import *  # noqa: F403
from millrace.ops.variables import Variable

if TYPE_CHECKING:  # at run time __getattr__ finds them when they are first named
    from millrace import (
        app,
        audio,
        contrib,
        data,
        distributions,
        estimator,
        examples,
        feature_column,
        flags,
        gfile,
        graph_util,
        image,
        initializers,
        keras,
        layers,
        linalg,
        losses,
        metrics,
        nn,
        profiler,
        python_io,
        resource_loader,
        saved_model,
        sets,
        signal,
        summary,
        sysconfig,
        test,
        train,
    )
    from millrace import tf_logging as logging
    from millrace.ops.gen_ops import (
        acos,
        asin,
        atan,
        ceil,
        check_numerics,
        cos,
        diag,
        dynamic_partition,
        dynamic_stitch,
        exp,
        expm1,
        floor,
        greater,
        greater_equal,
        is_finite,
        is_inf,
        is_nan,
        less,
        less_equal,
        lgamma,
        log,
        log1p,
        logical_and,
        logical_not,
        logical_or,
        matrix_inverse,
        reciprocal,
        rint,
        rsqrt,
        scatter_nd,
        segment_sum,
        sin,
        squared_difference,
        stop_gradient,
        tan,
        unsorted_segment_sum,
    )
    from millrace.protos.message import Message

    ConfigProto = Event = GPUOptions = GraphDef = GraphOptions = MetaGraphDef = NodeDef = RunMetadata = RunOptions = Summary = Message
del TYPE_CHECKING

for _name, _value in list(globals().items()):  # modules that came along with a star, such as Python's math
    if isinstance(_value, type(_dtypes)) and not _name.startswith("_") and _value.__name__ != "millrace." + _name and _value is not errors:
        del globals()[_name]

bool = _dtypes.bool_
newaxis = None
QUANTIZED_DTYPES = _dtypes.QUANTIZED_DTYPES
for _name in _names.generated():  # ops whose function is the generated one
    globals().setdefault(_name, getattr(_gen_ops, _name))
_dispatch.install(globals(), _dispatch.NAMES)
_dispatch.install_for_operators(globals(), ["cholesky", "matmul", "matrix_determinant", "matrix_inverse", "matrix_solve", "trace"])
inv = reciprocal


def load_ipython_extension(ipython: _Any) -> None:
    """`%load_ext millrace`: cells that say `import tensorflow as tf` get Millrace, and NumPy the names that it had then."""
    del ipython  # nothing of the shell itself changes
    from millrace.compat import dropped_modules, imports, numpy_names, python_names

    imports.install()
    numpy_names.install()
    python_names.install()
    dropped_modules.install()


def __getattr__(name: str) -> _Any:
    if name.startswith("__") and name not in _names.TABLE:
        raise AttributeError(name)
    try:
        value = _names.find(name)
    except AttributeError as error:
        if name in _names.TABLE or isinstance(error, NotImplementedError):
            raise
        raise errors.at_user_line(
            AttributeError(
                "module 'millrace' has no attribute %r. If TensorFlow 1.x has it, it is not provided yet; python/README.md says how to add it." % name
            )
        ) from None
    globals()[name] = value
    return value


def __dir__() -> _List[str]:
    return sorted({n for n in _missing.there(globals()) if not n.startswith("_") or n in ("__version__", "__file__")}.union(_names.under("")))
