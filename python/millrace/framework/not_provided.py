# SPDX-License-Identifier: Apache-2.0
"""The names of TensorFlow 1.15 that are not there, and what to use instead. They are no attributes: hasattr and dir say so, and whoever
asks for one gets an error that is an AttributeError and a NotImplementedError."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.framework.errors import at_user_line


class NotProvidedError(NotImplementedError, AttributeError):
    """A name of TensorFlow that this package lacks."""


# A row is a namespace and its names (none: the namespace itself), then what to use instead.
_TEXT = """
: GradientTape function wrap_function
    tf.gradients, and functions that build graphs: there is no eager execution
: ragged_fill_empty_rows
    tf.SparseTensor, or dense tensors with lengths
ragged: cross cross_hashed
    tf.sparse.cross of to_sparse()
: NoneTensorSpec ragged_fill_empty_rows_grad tensor_scatter_nd_max tensor_scatter_nd_min
    what TensorFlow 1.x has: this came with 2.x
: load_file_system_library
    tf.load_op_library, and files of this machine
: CXX_VERSION
    tf.version.COMPILER_VERSION
: conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 batch_function nondifferentiable_batch_function random_index_shuffle approx_top_k
    tf.nn and tf.raw_ops
: fftnd ifftnd rfftnd irfftnd check_pinned is_symbolic_tensor
    what TensorFlow 1.x has: this came with 2.x
distribute:
    one process with several CPU devices and tf.device: strategies need servers
tpu:
    tf.train and tf.estimator: there are no TPUs
lite:
    tf.saved_model
autograph:
    tf.cond and tf.while_loop: Python's own statements run while the graph is built
xla:
    sessions as they are: graphs are compiled by the session
mlir:
    tf.GraphDef
mixed_precision:
    tf.cast, and a loss that is scaled by hand
experimental:
    what TensorFlow 1.x has
types:
    tf.Tensor and tf.Variable
train.experimental: PythonState auto_mixed_precision_scope disable_mixed_precision_graph_rewrite enable_mixed_precision_graph_rewrite
    tf.train.experimental.MixedPrecisionLossScaleOptimizer, and tf.cast in the model: no graph is rewritten
train: sdca_fprint sdca_optimizer sdca_shrink_l1
    tf.train.FtrlOptimizer, or tf.train.ProximalGradientDescentOptimizer
train: CheckpointOptions
    tf.train.Checkpoint without options
train: do_quantize_training_on_graphdef
    tf.quantization.fake_quant_with_min_max_vars in the graph
data.experimental: CsvDatasetV2
    tf.data.experimental.CsvDataset
data.experimental: dense_to_sparse_batch dense_to_ragged_batch
    padded_batch, or tf.train.shuffle_batch and tf.contrib.training.bucket_by_sequence_length
data.experimental: AutoShardPolicy StatsOptions StatsAggregator bytes_produced_stats latency_stats
    data sets without options: threads are chosen by measurement
data.experimental: NestedStructure
    output_types and output_shapes of data sets
data.experimental: AutotuneAlgorithm AutotuneOptions DatasetInitializer ExternalStatePolicy SHARD_HINT ServiceOptions distributed_save
    what TensorFlow 1.x has: this came with 2.x
data.experimental: enable_debug_mode from_list get_model_proto index_table_from_dataset pad_to_cardinality table_from_dataset
    what TensorFlow 1.x has: this came with 2.x
data.experimental: assert_cardinality snapshot service
    tf.raw_ops
data: NumpyIterator ThreadingOptions
    data sets without options: threads are chosen by measurement
nn: approx_max_k approx_min_k silu experimental
    tf.nn.top_k, tf.nn.swish
linalg: LinearOperatorPermutation LinearOperatorTridiag LinearOperatorBlockLowerTriangular eigh_tridiagonal experimental
    what TensorFlow 1.x has: this came with 2.x
math: special approx_max_k approx_min_k erfinv erfcinv ndtri sobol_sample xlog1py
    what TensorFlow 1.x has: these came with 2.x
signal: mdct inverse_mdct kaiser_window kaiser_bessel_derived_window vorbis_window fftnd ifftnd irfftnd rfftnd
    tf.signal.stft with another window
random: stateless_parameterized_truncated_normal
    tf.random.stateless_truncated_normal
random: Generator Algorithm create_rng_state get_global_generator set_global_generator experimental fold_in split stateless_gamma stateless_poisson stateless_binomial
    tf.random.stateless_uniform and tf.random.stateless_normal
io: decode_proto encode_proto
    tf.py_func with the protobuf package
io: parse_sequence_example RaggedFeature
    tf.io.parse_single_sequence_example
io: decode_webp decode_jxl
    tf.io.decode_image
image: decode_webp decode_jxl generate_bounding_box_proposals
    tf.image.decode_image, tf.image.non_max_suppression
debugging: disable_traceback_filtering enable_traceback_filtering is_traceback_filtering_enabled
    what TensorFlow 1.x has: this came with 2.x
debugging: enable_check_numerics disable_check_numerics experimental
    tf.add_check_numerics_ops
saved_model: save load_v2 Asset SaveOptions experimental main_op_with_restore
    tf.saved_model.Builder, tf.saved_model.load and tf.saved_model.simple_save
test: disable_with_predicate is_cpu_target_available with_eager_op_as_function experimental
    tf.test.TestCase in one process
sysconfig: get_build_info CXX_VERSION
    tf.version
saved_model: DEBUG_DIRECTORY DEBUG_INFO_FILENAME_PB
    what TensorFlow 1.x has: this came with 2.x
sparse: bincount
    tf.bincount
"""


def _rows() -> Dict[str, str]:
    found: Dict[str, str] = {}
    names: Any = []
    for line in _TEXT.strip().splitlines():
        if line.startswith(" "):
            found.update((name, line.strip()) for name in names)
        else:
            space, _, listed = line.partition(":")
            names = [".".join(filter(None, (space, name))) for name in listed.split()] or [space]
    return found


TABLE = _rows()


def error(path: str) -> Optional[NotProvidedError]:
    """What to raise for a path below `tf`: None unless the table has it, or a namespace that it is in."""
    parts = path.split(".")
    for n in range(1, len(parts) + 1):
        instead = TABLE.get(".".join(parts[:n]))
        if instead is not None:
            return at_user_line(NotProvidedError("tf.%s is not provided: use %s." % (path, instead)))
    return None


def getter(space: str, otherwise: Optional[Callable[[str], Any]] = None) -> Callable[[str], Any]:
    """A module's __getattr__: names of the table say what to use instead; others are those of `otherwise`, or none."""
    def get(name: str) -> Any:
        if not name.startswith("_"):
            lacking = error("%s.%s" % (space, name))
            if lacking is not None:
                raise lacking
        if otherwise is not None:
            return otherwise(name)
        raise AttributeError("module 'millrace.%s' has no attribute %r" % (space, name))
    return get
