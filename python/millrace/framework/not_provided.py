# SPDX-License-Identifier: Apache-2.0
"""The names of TensorFlow 1.15 that are not there, and what to use instead. They are no attributes: hasattr and dir say so, and whoever
asks for one gets an error that is an AttributeError and a NotImplementedError."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from millrace.framework.errors import at_user_line


class NotProvidedError(NotImplementedError, AttributeError):
    """A name of TensorFlow that this package lacks."""


# A row is a namespace and its names (none: the namespace itself), then what to use instead.
_TEXT = """
: ragged_fill_empty_rows
    tf.SparseTensor, or dense tensors with lengths
ragged: cross cross_hashed
    tf.sparse.cross of to_sparse()
: NoneTensorSpec ragged_fill_empty_rows_grad tensor_scatter_nd_max tensor_scatter_nd_min
    what TensorFlow 1.x has: this came with 2.x
: CXX_VERSION
    tf.version.COMPILER_VERSION
: conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 batch_function random_index_shuffle approx_top_k
    tf.nn and tf.raw_ops
: fftnd ifftnd rfftnd irfftnd check_pinned is_symbolic_tensor
    what TensorFlow 1.x has: this came with 2.x
: ctc_loss_v2
    tf.nn.ctc_loss_v2
: InvalidArgumentError
    tf.errors.InvalidArgumentError
: Saver Supervisor SyncReplicasOptimizer LegacySyncReplicasOptimizer
    tf.train.Saver, tf.train.Supervisor and tf.train.SyncReplicasOptimizer
: softmax
    tf.nn.softmax
: RegisterShape
    tf.load_op_library: the library of an op knows its shapes
nn: linear cross_entropy_with_logits
    tf.layers.dense and tf.nn.softmax_cross_entropy_with_logits
python.distribute:
    the strategies of tf.distribute, which have one replica
python.keras.distribute:
    the strategies of tf.distribute, which have one replica
tpu:
    tf.estimator.tpu.TPUEstimator with use_tpu=False, or tf.train and tf.estimator: there are no TPUs
lite:
    tf.saved_model
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
train.experimental: auto_mixed_precision_scope
    tf.train.experimental.MixedPrecisionLossScaleOptimizer, and tf.cast in the model: no graph is rewritten
train: CheckpointOptions
    tf.train.Checkpoint without options
train: do_quantize_training_on_graphdef
    tf.quantization.fake_quant_with_min_max_vars in the graph
data.experimental: CsvDatasetV2
    tf.data.experimental.CsvDataset
data.experimental: dense_to_ragged_batch
    padded_batch, or tf.train.shuffle_batch and tf.contrib.training.bucket_by_sequence_length
data.experimental: AutoShardPolicy
    data sets without options: threads are chosen by measurement
data.experimental: NestedStructure
    output_types and output_shapes of data sets
data.experimental: AutotuneAlgorithm AutotuneOptions DatasetInitializer ExternalStatePolicy SHARD_HINT ServiceOptions distributed_save
    what TensorFlow 1.x has: this came with 2.x
data.experimental: enable_debug_mode from_list get_model_proto index_table_from_dataset pad_to_cardinality table_from_dataset
    what TensorFlow 1.x has: this came with 2.x
data.experimental: assert_cardinality snapshot service
    tf.raw_ops
keras.experimental: WideDeepModel
    tf.estimator.DNNLinearCombinedClassifier, or a Model of both
keras.utils: convert_all_kernels_in_model
    weights of TensorFlow
config: experimental_connect_to_cluster experimental_connect_to_host
    tf.train.Server and sessions with its target
config: experimental_run_functions_eagerly
    graphs and sessions: there is no eager execution
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
random: Generator Algorithm create_rng_state get_global_generator set_global_generator fold_in split stateless_gamma stateless_poisson stateless_binomial
    tf.random.stateless_uniform and tf.random.stateless_normal
io: decode_proto encode_proto
    tf.py_func with the protobuf package
io: RaggedFeature
    tf.io.VarLenFeature
io: decode_webp decode_jxl
    tf.io.decode_image
image: decode_webp decode_jxl generate_bounding_box_proposals
    tf.image.decode_image, tf.image.non_max_suppression
debugging: disable_traceback_filtering enable_traceback_filtering is_traceback_filtering_enabled
    what TensorFlow 1.x has: this came with 2.x
debugging: enable_check_numerics disable_check_numerics experimental
    tf.add_check_numerics_ops
saved_model: save load_v2 Asset SaveOptions experimental
    tf.saved_model.Builder, tf.saved_model.load and tf.saved_model.simple_save
test: disable_with_predicate is_cpu_target_available with_eager_op_as_function experimental
    tf.test.TestCase in one process
sysconfig: get_build_info CXX_VERSION
    tf.version
saved_model: DEBUG_DIRECTORY DEBUG_INFO_FILENAME_PB
    what TensorFlow 1.x has: this came with 2.x
sparse: bincount
    tf.bincount
contrib.checkpoint: split_dependency
    an attribute for each object that is to be kept
"""


# Packages of tf.contrib: what has taken their place.
_CONTRIB = {
    "tpu": "TPUEstimator with use_tpu=False, or tf.train and tf.estimator: there are no TPUs",
    "tensorrt": "sessions as they are: there is no TensorRT",
    "compiler": "sessions as they are: they compile their graphs, and there is no XLA",
    "distribute": "tf.train.Server and tf.train.SyncReplicasOptimizer",
    "eager": "graphs and sessions: there is no eager execution",
    "cloud": "files of this machine",
    "bigtable": "tf.data",
    "lite": "tf.saved_model",
    "ffmpeg": "tf.audio, for WAV files",
}
_USE = "what of tf.contrib is there (dir(tf.contrib) lists it), or a public name of tf"


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
    parts = path[len("compat.v2.") :].split(".") if path.startswith("compat.v2.") else path.split(".")
    for n in range(1, len(parts) + 1):
        instead = TABLE.get(".".join(parts[:n]))
        if instead is None and n == len(parts):
            instead = _inside(parts)
        if instead is not None:
            return at_user_line(NotProvidedError("tf.%s is not provided: use %s." % (path, instead)))
    return None


def _inside(parts: List[str]) -> Optional[str]:
    """What to use in place of anything absent below contrib, python and core."""
    if parts[0] == "contrib":
        return _CONTRIB.get(parts[1], _USE) if len(parts) > 1 else None
    return "the public name below tf, where there is one" if parts[0] in ("python", "core") and len(parts) > 1 else None


def getter(space: str, otherwise: Optional[Callable[[str], Any]] = None) -> Callable[[str], Any]:
    """A module's __getattr__: names that `otherwise` does not have say what to use instead where the table knows them."""

    def get(name: str) -> Any:
        if otherwise is not None:
            try:
                return otherwise(name)
            except AttributeError as lacking:
                if name.startswith("_"):
                    raise
                raise error("%s.%s" % (space, name)) or lacking from None
        known = None if name.startswith("_") else error("%s.%s" % (space, name))
        raise known or AttributeError("module 'millrace.%s' has no attribute %r" % (space, name))

    get.tells = True  # type: ignore[attr-defined]
    return get
