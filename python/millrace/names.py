# SPDX-License-Identifier: Apache-2.0
"""What the names below `tensorflow` mean here: one table of namespaces, of modules that are loaded when they are first used, and of the
module paths inside TensorFlow that programs import.

A section is a prefix in brackets; a row is `names = targets`. A target is a module of this package (`.` is the package itself); where
there are several, a name is looked for in each, in that order. `module:attribute` is one object. Rows of a namespace are `: names`, each
a name of the package or `new=old`. `@` is a package that only has others inside. python/tests/test_name_table.py resolves every row. Those of
tf.compat.v2 are in names_of_2.py.
"""

from __future__ import annotations

import importlib
import types
from typing import Any, Dict, List, Optional

from millrace import names_of_2
from millrace.framework import not_provided

_TEXT = """
[]
autograph app compat contrib data examples feature_column flags gfile graph_util image initializers keras layers linalg losses metrics nn python_io config = %
errors = framework.errors
resource_loader saved_model sets summary test train estimator distributions python sysconfig lookup audio signal profiler = %
raw_ops = ops.raw_ops
logging = tf_logging
user_ops = ops.gen_ops
models = @
math random io sparse dtypes debugging bitwise queue manip strings version spectral quantization nest = @
scalar_summary = summary:scalar_summary
histogram_summary = summary:histogram_summary
image_summary = summary:image_summary
merge_summary = summary:merge
merge_all_summaries = summary:merge_all
GraphDef NodeDef OpDef ConfigProto GPUOptions GraphOptions OptimizerOptions RunOptions RunMetadata Summary Event SummaryMetadata = protos.definitions:
HistogramProto AttrValue MetaGraphDef TensorInfo SessionLog LogMessage NameAttrList = protos.definitions:
make_tensor_proto make_ndarray MakeNdarray = framework.tensor_util:
GIT_VERSION COMPILER_VERSION __git_version__ __compiler_version__ = framework.versions:
get_static_value = framework.tensor_util:constant_value
is_tensor = framework.tensor_util:is_tensor
RaggedTensor = ops.ragged.tensor:RaggedTensor
ragged = @
TypeSpec TensorSpec SparseTensorSpec IndexedSlicesSpec OptionalSpec TensorArraySpec RaggedTensorSpec type_spec_from_value = framework.type_spec:
VariableAggregation VariableSynchronization UnconnectedGradients = framework.replication:
Module = module:Module
CriticalSection = ops.critical_section:CriticalSection
RecordInput = ops.record_input:RecordInput
SequenceExample = train:SequenceExample
init_variable = ops.state_ops:init_variable
index_table_from_file index_to_string_table_from_file = contrib.lookup:
variable_creator_scope = ops.variables:variable_creator_scope
pywrap_tensorflow = compat.pywrap
ReplicaDeviceSetter = train.cluster:replica_device_setter
recompute_grad = contrib.layers_memory:recomputed
GradientTape = ops.gradient_tape:GradientTape
function wrap_function = framework.def_function:
enable_control_flow_v2 disable_control_flow_v2 control_flow_v2_enabled = ops.control_flow_v2:
vectorized_map = ops.functional_ops:vectorized_map
nondifferentiable_batch_function = ops.batch_ops:batch_function
distribute = framework.strategy
tpu = contrib.tpu
estimator.tpu = contrib.tpu_estimator

[:generated]
acos acosh asin asinh atan atan2 atanh approximate_equal batch_to_space_nd bitcast broadcast_to ceil
check_numerics cholesky cos cosh cross diag diag_part digamma
dynamic_partition dynamic_stitch erfc exp expm1 floor
greater greater_equal identity_n invert_permutation is_finite is_inf is_nan less less_equal lgamma
log log1p logical_and logical_not logical_or matrix_band_part matrix_determinant
matrix_inverse matrix_solve matrix_triangular_solve polygamma prevent_gradient
reciprocal rint rsqrt scatter_nd segment_max segment_mean segment_min segment_prod segment_sum sin sinh
space_to_batch_nd squared_difference
stop_gradient string_to_hash_bucket_fast string_to_hash_bucket_strong tan unique_with_counts unsorted_segment_max
unsorted_segment_min unsorted_segment_prod unsorted_segment_sum zeta roll matching_files
mirror_pad xlogy xdivy div_no_nan stateless_random_normal stateless_random_uniform stateless_truncated_normal
bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
fft fft2d fft3d ifft ifft2d ifft3d batch_fft batch_fft2d batch_fft3d batch_ifft batch_ifft2d batch_ifft3d

igamma igammac betainc unravel_index guarantee_const timestamp

[distribute]
cluster_resolver = launch.resolvers launch.cloud_resolvers
experimental = @
experimental.CentralStorageStrategy experimental.CollectiveCommunication experimental.MultiWorkerMirroredStrategy = framework.strategy:
experimental.ParameterServerStrategy = framework.strategy:
Server = train.server:Server

[ragged]
constant placeholder constant_value range = ops.ragged.functions:
RaggedTensorValue = ops.ragged.value:RaggedTensorValue
map_flat_values = ops.ragged.maths:map_flat_values
boolean_mask stack stack_dynamic_partitions = ops.ragged.arrays:
row_splits_to_segment_ids segment_ids_to_row_splits = ops.ragged.segments:

[math]
: abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh atan atan2 atanh
: bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum digamma divide divide_no_nan=div_no_nan equal erf
: erfc exp expm1 floor floordiv floormod greater greater_equal imag in_top_k=nn.in_top_k invert_permutation is_finite
: is_inf is_nan is_non_decreasing is_strictly_increasing l2_normalize=nn.l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid
: log_softmax=nn.log_softmax logical_and logical_not logical_or logical_xor maximum minimum mod multiply
: negative not_equal polygamma polyval pow real reciprocal reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min
: reduce_prod reduce_std reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min
: segment_prod segment_sum sigmoid sign sin sinh softmax=nn.softmax softplus=nn.softplus softsign=nn.softsign sqrt square squared_difference
: subtract tan tanh top_k=nn.top_k truediv unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
: unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlogy zero_fraction=nn.zero_fraction zeta
: igamma igammac betainc bessel_i0=ops.derived_ops.bessel_i0 bessel_i1=ops.derived_ops.bessel_i1 bessel_i0e=ops.gen_ops.bessel_i0e
: bessel_i1e=ops.gen_ops.bessel_i1e cumulative_logsumexp=ops.band_ops.cumulative_logsumexp nextafter=ops.gen_ops.next_after
: multiply_no_nan=ops.tensor_scatter.multiply_no_nan reciprocal_no_nan=ops.tensor_scatter.reciprocal_no_nan
: reduce_euclidean_norm=ops.tensor_scatter.reduce_euclidean_norm

[random]
: all_candidate_sampler=nn.all_candidate_sampler categorical=ops.random_ops.categorical multinomial gamma=random_gamma get_seed
: log_uniform_candidate_sampler=nn.log_uniform_candidate_sampler fixed_unigram_candidate_sampler=nn.fixed_unigram_candidate_sampler
: learned_unigram_candidate_sampler=nn.learned_unigram_candidate_sampler uniform_candidate_sampler=nn.uniform_candidate_sampler
: normal=random_normal poisson=random_poisson set_random_seed shuffle=random_shuffle
: truncated_normal
: uniform=random_uniform

stateless_categorical stateless_multinomial stateless_normal stateless_truncated_normal stateless_uniform = ops.stateless_random_ops:

[random.experimental]
Generator create_rng_state get_global_generator set_global_generator = ops.stateful_random_ops:

[io]
gfile = gfile_names
: FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue SparseFeature
: TFRecordCompressionType=python_io.TFRecordCompressionType TFRecordOptions=python_io.TFRecordOptions
: TFRecordWriter=python_io.TFRecordWriter VarLenFeature decode_and_crop_jpeg=image.decode_and_crop_jpeg decode_base64 decode_bmp=image.decode_bmp
: decode_compressed decode_csv decode_gif=image.decode_gif decode_image=image.decode_image decode_jpeg=image.decode_jpeg decode_json_example
: decode_png=image.decode_png decode_raw encode_base64 encode_jpeg=image.encode_jpeg encode_png=image.encode_png
: extract_jpeg_shape=image.extract_jpeg_shape match_filenames_once=train.match_filenames_once matching_files parse_example
: parse_single_example parse_sequence_example=ops.parsing_ops.parse_sequence_example parse_single_sequence_example parse_tensor read_file serialize_many_sparse serialize_sparse
: serialize_tensor deserialize_many_sparse is_jpeg=ops.tensor_scatter.is_jpeg
: tf_record_iterator=python_io.tf_record_iterator write_file write_graph=train.write_graph

[sparse]
: SparseTensor add=sparse_add concat=sparse_concat cross=ops.sparse_ops.sparse_cross cross_hashed=ops.sparse_ops.sparse_cross_hashed expand_dims=sparse_expand_dims fill_empty_rows=sparse_fill_empty_rows
: mask=sparse_mask matmul=sparse_tensor_dense_matmul maximum=sparse_maximum merge=sparse_merge
: minimum=sparse_minimum placeholder=sparse_placeholder reduce_max=sparse_reduce_max reduce_max_sparse=sparse_reduce_max_sparse
: reduce_sum=sparse_reduce_sum reduce_sum_sparse=sparse_reduce_sum_sparse
: reorder=sparse_reorder reset_shape=sparse_reset_shape reshape=sparse_reshape retain=sparse_retain segment_mean=sparse_segment_mean
: segment_sqrt_n=sparse_segment_sqrt_n segment_sum=sparse_segment_sum slice=sparse_slice softmax=sparse_softmax
: sparse_dense_matmul=sparse_tensor_dense_matmul split=sparse_split to_dense=sparse_tensor_to_dense to_indicator=sparse_to_indicator
: transpose=sparse_transpose eye=ops.tensor_scatter.sparse_eye from_dense=ops.tensor_scatter.sparse_from_dense
: SparseConditionalAccumulator

[dtypes]
: DType QUANTIZED_DTYPES as_dtype as_string bfloat16 bool cast complex complex128 complex64 double float16 float32 float64 half int16
: int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource saturate_cast string uint16 uint32 uint64 uint8 variant

[debugging]
: Assert assert_all_finite=verify_tensor_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less
: assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive
: assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_shapes=ops.check_ops.assert_shapes assert_type check_numerics
: get_log_device_placement=config.get_log_device_placement set_log_device_placement=config.set_log_device_placement
: is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing

[strings]
split ngrams unicode_decode unicode_decode_with_offsets unicode_encode unicode_split unicode_split_with_offsets = ops.ragged.strings:
bytes_split = ops.ragged.strings:string_bytes_split
: as_string join=string_join length=string_length reduce_join regex_full_match=ops.string_ops.regex_full_match regex_replace
: unicode_transcode=ops.string_ops.unicode_transcode unsorted_segment_join=ops.string_ops.unsorted_segment_join
: substr to_hash_bucket=string_to_hash_bucket to_hash_bucket_fast=string_to_hash_bucket_fast
: to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number
: lower=ops.string_ops.string_lower upper=ops.string_ops.string_upper strip=string_strip format=ops.string_ops.string_format
: unicode_script=ops.string_ops.unicode_script

[bitwise]
: bitwise_and bitwise_or bitwise_xor invert left_shift right_shift

[queue]
: FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue

[nest]
: assert_same_structure=framework.nest.assert_same_structure flatten=framework.nest.flatten is_nested=framework.nest.is_sequence
: map_structure=framework.nest.map_structure pack_sequence_as=framework.nest.pack_sequence_as

[quantization]
: dequantize fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
: fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient
: quantize quantized_concat quantize_and_dequantize=ops.quantization_ops.quantize_and_dequantize
: quantize_and_dequantize_v2=ops.gen_ops.quantize_and_dequantize_v2

[manip]
: batch_to_space_nd gather_nd reshape reverse roll scatter_nd space_to_batch_nd tile

[spectral]
: dct=signal.dct fft=signal.fft fft2d=signal.fft2d fft3d=signal.fft3d idct=signal.idct ifft=signal.ifft ifft2d=signal.ifft2d
: ifft3d=signal.ifft3d irfft=signal.irfft irfft2d=signal.irfft2d irfft3d=signal.irfft3d rfft=signal.rfft rfft2d=signal.rfft2d
: rfft3d=signal.rfft3d

[version]
: VERSION GIT_VERSION COMPILER_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER

[tensorboard]
plugins = @
plugins.projector plugins.projector.projector_config_pb2 = contrib.tensorboard.plugins.projector

[contrib]
factorization.python.ops.gmm_ops factorization.python.ops.gmm = contrib.factorization_gmm
factorization.python.ops.clustering_ops = contrib.factorization ops.gen_ops
factorization.python.ops.factorization_ops = contrib.factorization_wals
factorization.python.ops.wals = contrib.factorization_wals_estimator
factorization.python.ops.gen_factorization_ops = ops.gen_ops
factorization.python.ops.gen_factorization_ops.wals_compute_partial_lhs_and_rhs = contrib.factorization_wals:wals_compute_partial_lhs_and_rhs
data deprecated distributions estimator factorization feature_column framework keras layers learn legacy_seq2seq linalg losses metrics rnn seq2seq slim training util = %
autograph = @
autograph.convert autograph.to_code autograph.to_graph = autograph:
autograph.do_not_convert autograph.set_loop_options = autograph.experimental:
eager = @
eager.defun = framework.def_function:defun
eager.function = framework.def_function:function
eager.executing_eagerly = framework.eager_context:executing_eagerly
eager.in_eager_mode = framework.eager_context:in_eager_mode
eager.python.checkpointable_utils = train.checkpoint train.tracking train.object_names train.object_graph
eager.python.checkpointable_utils.CheckpointableSaver = train.object_graph:saver_of_root
eager.python.checkpointable_utils._serialize_object_graph = train.object_graph:serialize_object_graph
eager.Checkpoint = train.checkpoint:Checkpoint
eager.GradientTape = ops.gradient_tape:GradientTape
eager.run_test_in_graph_and_eager_modes = testing.test_util:run_in_graph_and_eager_modes
eager.run_all_tests_in_graph_and_eager_modes = testing.test_util:run_all_in_graph_and_eager_modes
crf lookup opt signal staging tensorboard tfprof nn image all_reduce gan integrate solvers summary sparsemax mixed_precision optimizer_v2 linear_optimizer = %
nccl = contrib.all_reduce
stat_summarizer = profiler.stat_summarizer
layers.summaries = contrib.layers_summaries contrib.slim_summaries
slim.summaries slim.python.slim.summaries = contrib.slim_summaries
predictor predictor.python.predictor predictor.predictor_factories predictor.saved_model_predictor predictor.core_estimator_predictor = contrib.predictor
predictor.contrib_estimator_predictor = contrib.predictor
predictor.testing_common = contrib.predictor_testing
kernel_methods kernel_methods.python.losses = contrib.kernel_methods
resampler reduce_slice_ops text = %
text.python.ops.skip_gram_ops text.python.ops = contrib.text
resampler.python.ops.resampler_ops = contrib.resampler
reduce_slice_ops.python.ops.reduce_slice_ops = contrib.reduce_slice_ops
bayesflow copy_graph constrained_optimization checkpoint recurrent receptive_field specs model_pruning quantize labeled_tensor = %
bayesflow.stochastic_tensor bayesflow.stochastic_graph bayesflow.stochastic_gradient_estimators = contrib.stochastic_tensors
bayesflow.python.ops.stochastic_tensor bayesflow.python.ops.stochastic_graph bayesflow.python.ops.stochastic_gradient_estimators bayesflow.python.ops.stochastic_tensor_impl bayesflow.python.ops.stochastic_graph_impl = contrib.stochastic_tensors
bayesflow.entropy bayesflow.python.ops.entropy bayesflow.python.ops.entropy_impl = contrib.entropy
bayesflow.stochastic_variables bayesflow.variational_inference bayesflow.python.ops.stochastic_variables bayesflow.python.ops.variational_inference bayesflow.python.ops.variational_inference_impl = contrib.variational
timeseries = contrib.timeseries
timeseries.python timeseries.python.timeseries = contrib.timeseries contrib.timeseries.ar_anomalies contrib.timeseries.estimators contrib.timeseries.state_space.estimators contrib.timeseries.head
timeseries.python.timeseries.feature_keys timeseries.python.timeseries.state_management timeseries.python.timeseries.head = contrib.timeseries.%
timeseries.python.timeseries.saved_model_utils = contrib.timeseries.%
timeseries.examples = contrib.timeseries.examples
timeseries.examples.lstm = contrib.timeseries.examples.lstm contrib.timeseries.lstm_model
timeseries.examples.known_anomaly timeseries.examples.multivariate timeseries.examples.predict = contrib.timeseries.examples.%
timeseries.examples.lstm._LSTMModel = contrib.timeseries.lstm_model:LSTMModel
timeseries.python.timeseries.model = contrib.timeseries.model contrib.timeseries.sequential_model
timeseries.python.timeseries.estimators = contrib.timeseries.estimators contrib.timeseries.state_space.estimators
timeseries.python.timeseries.ar_model = contrib.timeseries.ar_model contrib.timeseries.ar_anomalies contrib.timeseries.prediction_networks
timeseries.python.timeseries.input_pipeline = contrib.timeseries.input_functions contrib.timeseries.readers
timeseries.python.timeseries.model_utils = contrib.timeseries.continuing
timeseries.python.timeseries.math_utils = contrib.timeseries.matrices contrib.timeseries.covariances contrib.timeseries.state_tables contrib.timeseries.input_statistics
timeseries.python.timeseries.state_space_models = contrib.timeseries.state_space
timeseries.python.timeseries.state_space_models.state_space_model = contrib.timeseries.state_space.state_space_model contrib.timeseries.state_space.ensembles contrib.timeseries.state_space.configuration
timeseries.python.timeseries.state_space_models.kalman_filter timeseries.python.timeseries.state_space_models.level_trend = contrib.timeseries.state_space.%
timeseries.python.timeseries.state_space_models.periodic timeseries.python.timeseries.state_space_models.varma = contrib.timeseries.state_space.%
timeseries.python.timeseries.state_space_models.structural_ensemble = contrib.timeseries.state_space.%
timeseries.python.timeseries.state_space_models.filtering_postprocessor = contrib.timeseries.state_space.%
hooks = @
hooks.ProfilerHook = train:ProfilerHook
hooks.python.training hooks.python.training.profiler_hook = train
linalg.python.ops.linear_operator_addition = ops.linalg_addition
linalg.python.ops.linear_operator_util = ops.linalg_broadcast ops.linalg_operators
linalg.python.ops.linear_operator_util.matrix_adjoint = ops.linalg_ops:adjoint
linalg.python.ops.linear_operator_util.matmul_with_broadcast = ops.matrix_ops:matmul
kfac meta_graph_transform cudnn_rnn memory_stats periodic_resample libsvm input_pipeline ndlstm tensor_forest = %
tensor_forest.client.eval_metrics = contrib.tensor_forest.metrics
boosted_trees = %
boosted_trees.python.ops.stats_accumulator_ops = contrib.boosted_trees.stats ops.gen_ops
boosted_trees.python.ops.quantile_ops = contrib.boosted_trees.quantiles ops.gen_ops
boosted_trees.python.ops.model_ops boosted_trees.python.ops.prediction_ops boosted_trees.python.ops.training_ops = contrib.boosted_trees.model ops.gen_ops
boosted_trees.python.ops.gen_model_ops boosted_trees.python.ops.gen_prediction_ops boosted_trees.python.ops.gen_training_ops = ops.gen_ops
boosted_trees.python.training.functions.gbdt_batch = contrib.boosted_trees.gbdt
boosted_trees.estimator_batch.estimator boosted_trees.estimator_batch.model boosted_trees.estimator_batch.trainer_hooks = contrib.boosted_trees.estimators
boosted_trees.python.utils.losses = contrib.boosted_trees.losses
boosted_trees.python.ops.split_handler_ops = contrib.boosted_trees.splits ops.gen_ops
boosted_trees.python.ops.gen_stats_accumulator_ops boosted_trees.python.ops.gen_quantile_ops boosted_trees.python.ops.gen_split_handler_ops = ops.gen_ops
boosted_trees.proto.learner_pb2 boosted_trees.proto.quantiles_pb2 boosted_trees.proto.split_info_pb2 boosted_trees.proto.tree_config_pb2 = protos.contrib_trees
tensor_forest.python.tensor_forest = contrib.tensor_forest
tensor_forest.client.random_forest = contrib.tensor_forest.estimator contrib.tensor_forest
tensor_forest.python.ops.data_ops = contrib.tensor_forest.columns
tensor_forest.python.ops.model_ops tensor_forest.python.ops.stats_ops = contrib.tensor_forest.variables ops.gen_ops
tensor_forest.python.ops.gen_model_ops tensor_forest.python.ops.gen_stats_ops = ops.gen_ops
tensor_forest.proto.tensor_forest_params_pb2 tensor_forest.proto.fertile_stats_pb2 decision_trees.proto.generic_tree_model_pb2 = protos.forests
decision_trees.proto.generic_tree_model_extensions_pb2 = protos.forests
tensor_forest.python.ops.tensor_forest_ops = contrib.tensor_forest.scatter
tensor_forest.hybrid.ops.gen_training_ops tensor_forest.hybrid.python.ops.training_ops = contrib.tensor_forest.routing
tensor_forest.hybrid.python.hybrid_layer tensor_forest.hybrid.python.layers.decisions_to_data = contrib.tensor_forest.layers
tensor_forest.hybrid.python.layers.fully_connected = contrib.tensor_forest.layers
tensor_forest.hybrid.python.hybrid_model tensor_forest.hybrid.python.models.decisions_to_data_then_nn = contrib.tensor_forest.hybrid
tensor_forest.hybrid.python.models.forest_to_data_then_nn tensor_forest.hybrid.python.models.nn = contrib.tensor_forest.hybrid
tensor_forest.hybrid.python.models.hard_decisions_to_data_then_nn = contrib.tensor_forest.hybrid
tensor_forest.hybrid.python.models.k_feature_decisions_to_data_then_nn = contrib.tensor_forest.hybrid
tensor_forest.hybrid.python.models.stochastic_hard_decisions_to_data_then_nn = contrib.tensor_forest.hybrid
tensor_forest.hybrid.python.models.stochastic_soft_decisions_to_data_then_nn = contrib.tensor_forest.hybrid
ndlstm.python.lstm1d ndlstm.python.lstm2d ndlstm.python.misc = contrib.ndlstm
libsvm.python.ops.libsvm_ops = contrib.libsvm
input_pipeline.python.ops.input_pipeline_ops = contrib.input_pipeline
memory_stats.python.ops.memory_stats_ops = contrib.memory_stats
periodic_resample.python.ops.periodic_resample_op = contrib.periodic_resample
cudnn_rnn.python.ops.cudnn_rnn_ops cudnn_rnn.python.layers cudnn_rnn.python.layers.cudnn_rnn cudnn_rnn.ops.cudnn_rnn_ops = contrib.cudnn_rnn
kfac.python.ops = contrib.kfac
kfac.examples = contrib.kfac.examples
kfac.examples.convnet kfac.examples.mlp kfac.examples.mnist = contrib.kfac.examples.%
kfac.python.ops.curvature_matrix_vector_products kfac.python.ops.curvature_matrix_vector_products_lib = contrib.kfac.curvature_products
kfac.python.ops.estimator kfac.python.ops.estimator_lib = contrib.kfac.estimator
kfac.python.ops.fisher_blocks kfac.python.ops.fisher_blocks_lib = contrib.kfac.fisher_blocks
kfac.python.ops.fisher_factors kfac.python.ops.fisher_factors_lib = contrib.kfac.fisher_factors
kfac.python.ops.layer_collection kfac.python.ops.layer_collection_lib = contrib.kfac.layer_collection
kfac.python.ops.loss_functions kfac.python.ops.loss_functions_lib = contrib.kfac.loss_functions
kfac.python.ops.op_queue kfac.python.ops.op_queue_lib = contrib.kfac.op_queue
kfac.python.ops.optimizer kfac.python.ops.optimizer_lib = contrib.kfac.optimizer
kfac.python.ops.utils kfac.python.ops.utils_lib = contrib.kfac.utils
kfac.python.ops.placement = contrib.kfac.estimator
kfac.python.ops.linear_operator = contrib.kfac.linear_operators
labeled_tensor.python.ops._typecheck = contrib.labeled_tensor.axes
labeled_tensor.python.ops.core labeled_tensor.python.ops.ops labeled_tensor.python.ops.nn = contrib.labeled_tensor.%
labeled_tensor.python.ops.io_ops = contrib.labeled_tensor.reading
labeled_tensor.python.ops.sugar = contrib.labeled_tensor.ops
quantize.python.quantize_graph = contrib.quantize
quantize.python.quantize = contrib.quantize.layers
quantize.python.common quantize.python.graph_matcher quantize.python.quant_ops quantize.python.fold_batch_norms = contrib.quantize.%
quantize.python.input_to_ops = contrib.quantize.common
model_pruning.python.learning = contrib.model_pruning
tensorboard.plugins = contrib.tensorboard.plugins
tensorboard.plugins.projector = contrib.tensorboard.plugins.projector
tensorboard.plugins.trace tensorboard.plugins.trace.trace = contrib.tensorboard.plugins.trace
tensorboard.plugins.trace.trace_info_pb2 = contrib.tensorboard.plugins.trace
tensorboard.plugins.projector.projector_config_pb2 = contrib.tensorboard.plugins.projector
saved_model.python.saved_model.keras_saved_model = contrib.keras_saved_model
model_pruning.python.layers.core_layers model_pruning.python.layers.layers model_pruning.python.layers.rnn_cells = contrib.model_pruning.layers
model_pruning.python.pruning = contrib.model_pruning.pruning contrib.model_pruning.weights
model_pruning.python.pruning_utils = contrib.model_pruning.weights
model_pruning.python.strip_pruning_vars_lib = contrib.model_pruning.stripping
specs.python specs.python.specs = contrib.specs
specs.python.specs_lib specs.python.specs_ops specs.python.params_ops = contrib.specs.functions contrib.specs.operators contrib.specs.params
specs.python.summaries = contrib.specs.summaries
receptive_field.receptive_field_api receptive_field.python.util.graph_compute_order = contrib.receptive_field
receptive_field.python.util.parse_layer_parameters receptive_field.python.util.receptive_field = contrib.receptive_field
constrained_optimization.python.external_regret_optimizer constrained_optimization.python.swap_regret_optimizer = contrib.constrained_optimization.optimizers
constrained_optimization.python.candidates = contrib.constrained_optimization.candidates
opt.python.training.matrix_functions = contrib.matrix_functions
opt.python.training.agn_optimizer opt.python.training.elastic_average_optimizer = contrib.averaging_optimizers
opt.python.training.model_average_optimizer = contrib.averaging_optimizers
nn.python.ops.fwd_gradients = contrib.nn
grid_rnn = %
recurrent.python.ops recurrent.python.ops.recurrent recurrent.python.ops.functional_rnn = contrib.recurrent
optimizer_v2.adadelta optimizer_v2.adagrad optimizer_v2.adam optimizer_v2.gradient_descent optimizer_v2.momentum optimizer_v2.rmsprop optimizer_v2.optimizer_v2 = contrib.optimizer_v2
mixed_precision.python.loss_scale_manager mixed_precision.python.loss_scale_optimizer = contrib.mixed_precision
linear_optimizer.python.sdca_optimizer linear_optimizer.python.ops.sparse_feature_column = contrib.linear_optimizer
linear_optimizer.python.ops.sharded_mutable_dense_hashtable linear_optimizer.python.ops.sdca_ops = contrib.linear_optimizer
linear_optimizer.python.sdca_estimator learn.python.learn.estimators.svm = contrib.learn.sdca
stateless.stateless_random_uniform = ops.stateless_random_ops:stateless_uniform
stateless.stateless_random_normal = ops.stateless_random_ops:stateless_normal
stateless.stateless_truncated_normal = ops.stateless_random_ops:stateless_truncated_normal
stateless.stateless_multinomial = ops.stateless_random_ops:stateless_multinomial
summary.summary summary.summary_ops = contrib.summary ops.summary_writers
batching batching.python.ops.batch_ops = ops.batch_ops
skflow = contrib.learn
learn.estimators = contrib.learn contrib.learn.estimators
estimator.python.estimator.multi_head = contrib.estimator
estimator.python.estimator.early_stopping estimator.python.estimator.hooks = estimator.experimental
estimator.python.estimator.rnn = contrib.estimator_rnn
estimator.python.estimator.boosted_trees = contrib.estimator_trees
estimator.python.estimator.replicate_model_fn = contrib.replication
estimator.python.estimator.dnn_with_layer_annotations = contrib.layer_annotations
estimator.python.estimator.saved_model_estimator = contrib.saved_model_estimator
session_bundle = %
session_bundle.bundle_shim session_bundle.constants session_bundle.exporter session_bundle.gc session_bundle.session_bundle = contrib.session_bundle.%
session_bundle.manifest_pb2 = protos.manifest
learn.python.learn.preprocessing learn.python.learn.preprocessing.text learn.python.learn.preprocessing.categorical = contrib.learn.preprocessing
learn.python.learn.preprocessing.categorical_vocabulary learn.preprocessing.categorical_vocabulary = contrib.learn.preprocessing
learn.preprocessing.text learn.preprocessing.categorical = contrib.learn.preprocessing
learn.python.learn.estimators.debug = contrib.learn.debug
learn.python.learn.estimators.tensor_signature = contrib.learn.tensor_signature
learn.python.learn.estimators.rnn_common = contrib.learn.rnn_common
learn.python.learn.estimators.dynamic_rnn_estimator = contrib.learn.dynamic_rnn
learn.python.learn.estimators.state_saving_rnn_estimator = contrib.learn.state_saving_rnn
learn.python.learn.estimators.composable_model = contrib.learn.composable_model
learn.python.learn.utils.export = contrib.learn.export
learn.python.learn.utils.gc = contrib.session_bundle.gc
learn.python.learn.utils learn.python.learn.utils.input_fn_utils = contrib.learn.io contrib.learn.export_utils
learn.python.learn.utils.saved_model_export_utils = contrib.learn.export_utils
learn.python.learn.ops = contrib.learn.ops
image.python.ops image.python.ops.image_ops image.python.ops.distort_image_ops image.ops image.ops.gen_image_ops = contrib.image
image.python.ops.dense_image_warp image.python.ops.interpolate_spline image.python.ops.sparse_image_warp = contrib.image_warps
all_reduce.python.all_reduce = contrib.all_reduce
saved_model saved_model.python.saved_model saved_model.python.saved_model.reader = saved_model.utils contrib.keras_saved_model
distributions.bijectors distributions.bijector distributions.python.ops.bijector = distributions.bijectors
distributions.BetaWithSoftplusAB = contrib.distributions:BetaWithSoftplusConcentration
distributions.ExponentialWithSoftplusLam = contrib.distributions:ExponentialWithSoftplusRate
distributions.GammaWithSoftplusAlphaBeta = contrib.distributions:GammaWithSoftplusConcentrationRate
distributions.InverseGammaWithSoftplusAlphaBeta = contrib.distributions:InverseGammaWithSoftplusConcentrationRate
distributions.MultivariateNormalDiagWithSoftplusStDev = contrib.distributions:MultivariateNormalDiagWithSoftplusScale
distributions.NormalWithSoftplusSigma = contrib.distributions:NormalWithSoftplusScale
distributions.StudentTWithAbsDfSoftplusSigma = contrib.distributions:StudentTWithAbsDfSoftplusScale
distributions.BernoulliWithSigmoidP = contrib.distributions:BernoulliWithSigmoidProbs
distributions.python.ops.distribution_util = distributions.shape_util distributions.util
distributions.python.ops.statistical_testing = distributions.mean_bounds
distributions.python.ops.operator_pd = contrib.operator_pd
distributions.python.ops.operator_pd_cholesky distributions.python.ops.operator_pd_diag distributions.python.ops.operator_pd_full = contrib.operator_pd_classes
distributions.python.ops.operator_pd_identity = contrib.operator_pd_classes
distributions.python.ops.operator_pd_vdvt_update = contrib.operator_pd_update
distributions.python.ops.vector_diffeomixture = distributions.diffeomixture
distributions.python.ops.shape._DistributionShape = distributions.sample_shape:DistributionShape
distributions.python.ops.vector_student_t._VectorStudentT = distributions.vector_student_t:VectorStudentT
distributions.python.ops.bijectors = distributions.bijectors
distributions.python.ops.bijectors.masked_autoregressive = distributions.flow_bijectors
saved_model.python.saved_model.signature_def_utils = saved_model.signature_def_utils
distribute = framework.strategy contrib.towers testing.loss_steps
distribute.python.combinations = testing.combinations contrib.towers testing.strategies
distribute.python.mirrored_strategy distribute.python.one_device_strategy distribute.python.parameter_server_strategy = framework.strategy
distribute.python.single_loss_example distribute.python.monitor = contrib.towers
distribute.python.step_fn = testing.loss_steps
distribute.python.shared_variable_creator = train.shared_variables
distribute.python.values distribute.python.cross_tower_ops = contrib.tower_values
cluster_resolver cluster_resolver.python.training = launch.resolvers launch.cloud_resolvers
cluster_resolver.python.training.cluster_resolver = launch.resolvers
cluster_resolver.python.training.tpu_cluster_resolver cluster_resolver.python.training.gce_cluster_resolver = launch.cloud_resolvers
tpu = %
tpu.python.tpu.tpu_config tpu.python.tpu.tpu_estimator tpu.python.tpu.tpu_optimizer tpu.python.tpu.tpu_function tpu.python.tpu.bfloat16 = contrib.tpu
tpu.python.ops.tpu_ops = contrib.tpu

[python.framework]
op_def_library = framework.op_def_library
op_def_registry = framework.op_def_registry
ops = . framework.graph framework.graph_elements framework.composite_tensors framework.convert framework.proto_functions framework.library_names ops.gradients
constant_op = . framework.convert
constant_op.constant_v1 = framework.convert:constant
common_shapes = framework.common_shapes .
device = framework.device
dtypes = framework.dtypes
errors errors_impl = framework.errors
tensor_shape = framework.tensor_shape
tensor_shape.dimension_value = ops.tensor_scatter:dimension_value
tensor_shape.dimension_at_index = ops.tensor_scatter:dimension_at_index
device_spec.DeviceSpecV2 = framework.device:DeviceSpecV2
graph_util graph_util_impl = graph_util
random_seed = framework.random_seed
importer = framework.importer
tensor_conversion_registry = framework.convert
tensor_util = framework.tensor_util
function = framework.function
sparse_tensor = framework.composite_tensors framework.type_spec
versions = framework.versions
graph_to_function_def = framework.graph_to_function
c_api_util = framework.c_api_util
graph_io = train
meta_graph = train.meta_graph
test_util = testing.test_util
test_ops test_ops_2 = testing.test_ops

load_library = .
framework_lib = .



tensor_spec type_spec = framework.type_spec
indexed_slices = framework.composite_tensors framework.type_spec
composite_tensor = framework.composite_tensors
composite_tensor_utils = ops.composite_tensor_utils
cpp_shape_inference_pb2 = protos.definitions
config = config
device_spec = framework.device
device_spec.DeviceSpecV1 = framework.device:DeviceSpec
smart_cond = ops.control_flow_ops
subscribe = ops.subscribe
traceable_stack registry = compat.stacks
func_graph auto_control_deps = framework.func_graph
function_def_to_graph = framework.function_def_to_graph
error_interpolation = framework.error_interpolation
kernels = framework.kernels

[python.client]
session = framework.session
graph_util = graph_util
timeline = timeline
device_lib = device_lib
client_lib = .

[python.grappler]
tf_optimizer cluster item = .

[python.eager]
context = framework.eager_context
function = framework.def_function framework.function
def_function wrap_function = framework.def_function
backprop = ops.gradient_tape .
execution_callbacks = framework.execution_callbacks
test = test

[python.ops]
nccl_ops = contrib.all_reduce
session_ops = ops.session_ops . ops.gen_ops
array_ops = . ops.array_ops ops.gen_ops ops.arguments_of_2
summary_ops_v2 = contrib.summary ops.summary_writers
math_ops special_math_ops = . ops.math_ops ops.matrix_ops ops.derived_ops ops.tensor_scatter ops.band_ops ops.gen_ops ops.arguments_of_2
bitwise_ops clip_ops histogram_ops io_ops linalg_ops numerics standard_ops sdca_ops = . ops.gen_ops ops.arguments_of_2
logging_ops = ops.logging_ops . ops.gen_ops
logging_ops.print_v2 = ops.logging_ops:print
sort_ops = ops.sort_ops
collective_ops = ops.collective_ops
state_ops = ops.state_ops . ops.gen_ops
spectral_ops = signal ops.gen_ops
signal.fft_ops signal.dct_ops signal.mel_ops signal.mfcc_ops signal.reconstruction_ops signal.shape_ops signal.spectral_ops signal.window_ops signal.signal = signal
ragged.ragged_tensor = ops.ragged.tensor ops.ragged.value framework.type_spec
ragged.ragged_tensor_value = ops.ragged.value
ragged.ragged_factory_ops = ops.ragged.functions .
ragged.ragged_math_ops = ops.ragged.functions ops.ragged.reductions .
ragged.ragged_array_ops ragged.ragged_concat_ops ragged.ragged_where_op ragged.ragged_squeeze_op = ops.ragged.arrays ops.ragged.handlers .
ragged.ragged_gather_ops ragged.ragged_batch_gather_ops ragged.ragged_batch_gather_with_default_op = ops.ragged.gathers
ragged.ragged_dispatch = ops.ragged.handlers
ragged.ragged_tensor_shape = ops.ragged.shapes
ragged.ragged_util = ops.ragged.segments
ragged.ragged_functional_ops ragged.ragged_map_ops = ops.ragged.maths
ragged.ragged_string_ops = ops.ragged.strings ops.string_ops
ragged.ragged_string_ops.strings_split_v1 = ops.ragged.strings:split
ragged.ragged_getitem = ops.ragged.getitem
ragged.ragged_conversion_ops = ops.ragged.conversions
ragged.segment_id_ops = ops.ragged.segments
confusion_matrix = ops.confusion_matrix
weights_broadcast_ops = ops.weights_broadcast
array_grad control_flow_grad data_flow_grad image_grad linalg_grad math_grad nn_grad sparse_grad spectral_grad state_grad tensor_array_grad random_grad rnn_grad = .
nn_grad._BatchNormGrad = ops.moments:batch_norm_gradients
tensor_array_grad._GetGradSource = ops.tensor_array_ops:gradient_source
manip_ops = . ops.gen_ops
boosted_trees_ops = train.boosted_trees ops.gen_ops
inplace_ops = ops.inplace_ops ops.gen_ops
gen_bitwise_ops = . ops.gen_ops ops.raw_ops
gen_array_ops gen_audio_ops gen_candidate_sampling_ops gen_checkpoint_ops gen_control_flow_ops gen_ctc_ops gen_data_flow_ops = ops.gen_ops ops.raw_ops
gen_functional_ops.case = ops.functional_calls:case
gen_dataset_ops gen_functional_ops gen_image_ops gen_io_ops gen_linalg_ops gen_list_ops gen_logging_ops gen_lookup_ops gen_math_ops gen_nn_ops = ops.gen_ops ops.raw_ops
gen_boosted_trees_ops gen_parsing_ops gen_random_ops gen_resource_variable_ops gen_rnn_ops gen_script_ops gen_sdca_ops gen_set_ops gen_sparse_ops gen_spectral_ops = ops.gen_ops ops.raw_ops
gen_state_ops gen_stateless_random_ops gen_string_ops gen_summary_ops gen_user_ops = ops.gen_ops ops.raw_ops
gen_collective_ops gen_experimental_dataset_ops gen_manip_ops gen_ragged_array_ops gen_ragged_conversion_ops gen_ragged_math_ops = ops.gen_ops ops.raw_ops
linalg_ops_impl = ops.matrix_ops
gradient_checker = testing.gradient_checker
gradient_checker_v2 = testing.gradient_checker_v2
gradients gradients_impl custom_gradient = ops.gradients ops.dependent_variables . ops.arguments_of_2
control_flow_ops = ops.control_flow_ops . ops.gen_ops ops.arguments_of_2
control_flow_util = ops.control_flow_util framework.behavior ops.control_flow_v2
control_flow_v2_toggles control_flow_util_v2 = ops.control_flow_v2
op_selector = contrib.graph_editor.util contrib.graph_editor.select
while_v2 cond_v2 = ops.control_flow_v2
critical_section_ops = ops.critical_section
tensor_array_ops = ops.tensor_array_ops framework.type_spec
functional_ops map_fn = ops.functional_ops ops.functional_calls .
list_ops = ops.list_ops ops.gen_ops
check_ops = ops.check_ops . ops.arguments_of_2
candidate_sampling_ops = ops.candidate_sampling nn
ctc_ops = ops.ctc_ops nn
data_flow_ops = ops.queues ops.accumulators ops.staging ops.map_staging ops.barriers ops.record_input . ops.gen_ops
embedding_ops = nn . ops.sparse_lookup ops.arguments_of_2
embedding_ops._embedding_lookup_and_transform = ops.sparse_lookup:embedding_lookup_and_transform
image_ops image_ops_impl = image ops.image_resize ops.image_boxes ops.image_files . ops.gen_ops ops.arguments_of_2
image_ops.ResizeMethod image_ops_impl.ResizeMethod = ops.image_resize:ResizeMethodV2
image_ops.ResizeMethodV1 image_ops_impl.ResizeMethodV1 = ops.image_resize:ResizeMethod
image_ops._verify_compatible_image_shapes image_ops_impl._verify_compatible_image_shapes = ops.image_similarity:verify_compatible
image_ops.resize_image_with_pad_v1 image_ops_impl.resize_image_with_pad_v1 = ops.image_resize:resize_image_with_pad
init_ops initializers_ns = ops.init_ops ops.orthogonal_kernels initializers .
init_ops_v2 = ops.init_ops_v2
linalg_ns linalg_impl linalg.linalg linalg.linalg_impl = linalg . ops.linalg_ops
linalg_impl.matrix_exponential linalg.linalg_impl.matrix_exponential = linalg:expm
linalg_impl.matrix_logarithm linalg.linalg_impl.matrix_logarithm = linalg:logm
linalg = linalg
linalg.linear_operator linalg.linear_operator_diag linalg.linear_operator_full_matrix linalg.linear_operator_identity = linalg
linalg.linear_operator_adjoint linalg.linear_operator_block_diag linalg.linear_operator_composition = linalg
linalg.linear_operator_circulant linalg.linear_operator_toeplitz = ops.linalg_composed_operators linalg
linalg.linear_operator_householder linalg.linear_operator_inversion linalg.linear_operator_kronecker linalg.linear_operator_low_rank_update = linalg
linalg.linear_operator_lower_triangular linalg.linear_operator_zeros = linalg
linalg.linear_operator_algebra linalg.adjoint_registrations linalg.cholesky_registrations linalg.inverse_registrations = ops.linalg_algebra
linalg.matmul_registrations linalg.solve_registrations = ops.linalg_algebra
linalg.linear_operator_util = ops.linalg_broadcast ops.linalg_operators
linalg.linear_operator_util.matmul_with_broadcast = ops.matrix_ops:matmul
linalg.linear_operator_addition = ops.linalg_addition
lookup_ops = ops.lookup_ops .
lookup_ops.StaticHashTableV1 = ops.lookup_ops:StaticHashTable
lookup_ops.StaticVocabularyTableV1 = ops.lookup_ops:StaticVocabularyTable
sparse_ops.gen_sparse_ops = ops.gen_ops ops.raw_ops
sparse_ops.from_dense = ops.tensor_scatter:sparse_from_dense
sparse_ops.sparse_eye = ops.tensor_scatter:sparse_eye
math_ops.nextafter = ops.gen_ops:next_after
array_ops.pad_v2 = ops.arguments_of_2:pad_v2
array_ops.gather_v2 = ops.arguments_of_2:gather_v2
array_ops.batch_gather_nd = ops.gather_ops:batch_gather_nd
metrics metrics_impl = metrics
metrics_impl._streaming_confusion_matrix metrics._streaming_confusion_matrix = metrics.streaming:streaming_confusion_matrix
metrics_impl.metric_variable metrics.metric_variable = metrics.parts:metric_variable
losses losses.losses losses.losses_impl losses.loss_reduction = losses
losses.loss_reduction.ReductionV2 = keras.utils.losses_utils:ReductionV2
losses.losses_impl._safe_div = ops.gen_ops:div_no_nan
losses.util = losses
nn = nn
nn_ops nn_impl = nn ops.candidate_sampling ops.moments ops.window_ops . ops.gen_ops ops.arguments_of_2 ops.pool_ops
nn_impl.normalize = ops.lu_ops:normalize
nn_impl_distribute = nn
parsing_ops = ops.parsing_ops . ops.gen_ops ops.arguments_of_2
parsing_ops.decode_raw_v1 = ops.string_ops:decode_raw
partitioned_variables = ops.partitioned_variables ops.partitions .
random_ops = ops.random_ops . ops.gen_ops
stateless_random_ops = ops.stateless_random_ops . ops.gen_ops
stateful_random_ops = ops.stateful_random_ops
clustering_ops gen_clustering_ops = ops.gen_ops ops.raw_ops
clustering_ops.KMeans = contrib.factorization:KMeans
batch_ops = ops.batch_ops
gen_batch_ops gen_stateful_random_ops = ops.gen_ops ops.raw_ops
gen_batch_ops.batch_function = ops.batch_ops:called_in_batches
stateless_random_ops.stateless_random_uniform = ops.stateless_random_ops:stateless_uniform
stateless_random_ops.stateless_random_normal = ops.stateless_random_ops:stateless_normal
stateless_random_ops.stateless_truncated_normal = ops.stateless_random_ops:stateless_truncated_normal
resources = ops.resources
resource_variable_ops = ops.resource_variables . ops.gen_ops

rnn = ops.rnn
rnn_cell rnn_cell_impl rnn.rnn_cell_impl = ops.rnn_cell
script_ops = ops.script_ops .
script_ops.eager_py_func = ops.script_ops:py_function
seq2seq = contrib.legacy_seq2seq

sets sets_impl = sets
sparse_ops = ops.sparse_ops ops.sparse_math_ops . ops.gen_ops ops.arguments_of_2
string_ops = . ops.string_ops ops.gen_ops ops.arguments_of_2
summary_ops summary_op_util = summary ops.gen_ops
template = ops.template
variable_scope = ops.variable_scope ops.variables framework.replication
variable_scope.variable = ops.variables:Variable
variables = ops.variables .
variables.VariableV1 = ops.variables:Variable
variables.VariableAggregationV2 = framework.replication:VariableAggregation
variables._all_saveable_objects = train.saveable:all_saveable_objects
gradients_util = ops.gradients .
unconnected_gradients = framework.replication
parallel_for parallel_for.control_flow_ops parallel_for.gradients parallel_for.pfor = ops.parallel_for
distributions distributions.distributions distributions.distribution distributions.kullback_leibler = distributions distributions.distribution
distributions.util = distributions.util distributions.distribution distributions.shape_util
distributions.special_math distributions.bijectors = distributions.%
distributions.bijector distributions.bijector_impl distributions.identity_bijector distributions.transformed_distribution = distributions.bijector
distributions.bernoulli distributions.beta distributions.categorical distributions.dirichlet distributions.dirichlet_multinomial = distributions distributions.discrete distributions.multivariate distributions.continuous
distributions.exponential distributions.gamma distributions.laplace distributions.multinomial distributions.normal distributions.student_t = distributions distributions.continuous distributions.multivariate
distributions.uniform = distributions distributions.continuous

[python.platform]
app = app
flags = flags
gfile = gfile
tf_logging = tf_logging
test = test
googletest = testing.googletest
benchmark = testing.benchmark
resource_loader = resource_loader
sysconfig = sysconfig

[python.lib.io]
python_io tf_record = python_io
file_io = file_io

[python.grappler]
tf_optimizer = @

[python.training]
distribution_strategy_context = framework.strategy
training = train
moving_averages = train.moving_averages
training_util = train.global_step .
distribute = framework.tower_context framework.strategy
device_util = framework.device_names
saver = train.saver train.object_names
checkpoint_management = train.checkpoint_management train.checkpoint_manager train.saver
checkpoint_management.update_checkpoint_state_internal = train.checkpoint_management:update_checkpoint_state
saveable_object = train.saveable
checkpoint_utils = train.checkpoint_utils
tracking.util = train.checkpoint train.tracking train.object_names train.object_graph
tracking.base tracking.tracking tracking.python_state = train.tracking
tracking.util.CheckpointV1 = train.checkpoint:Checkpoint
tracking.data_structures = structures
tracking.graph_view = train.object_graph
checkpointable.util = train.checkpoint train.tracking train.object_names train.object_graph
checkpointable checkpointable.base checkpointable.tracking = train.tracking
checkpointable.Checkpointable checkpointable.tracking.Checkpointable = train.tracking:AutoTrackable
checkpointable.tracking.NotCheckpointable = train.tracking:NotTrackable
checkpointable.CheckpointableBase checkpointable.base.CheckpointableBase = train.tracking:Trackable
checkpointable.data_structures = structures
checkpointable.util.CheckpointableSaver = train.object_graph:saver_of_root
checkpointable.util._serialize_object_graph = train.object_graph:serialize_object_graph
checkpointable.util.CheckpointV1 = train.checkpoint:Checkpoint
saving.saveable_object saving.saveable_object_util = train.saveable
saving.functional_saver = train.functional_saver
experimental.loss_scale experimental.loss_scale_optimizer experimental.mixed_precision = train.experimental
experimental.loss_scale.get = train.experimental:loss_scale_of
experimental.mixed_precision_global_state = framework.behavior
experimental.mixed_precision.enable_mixed_precision_graph_rewrite_v1 = train.experimental:enable_mixed_precision_graph_rewrite
checkpoint_ops = train.checkpoint_ops
basic_loops = train.basic_loops
evaluation = train.evaluation contrib.training_loops
optimizer = train.optimizer
slot_creator = train.slot_creator
warm_starting_util = train.warm_starting
adadelta adagrad adam ftrl gradient_descent momentum rmsprop adagrad_da proximal_adagrad proximal_gradient_descent = train.rules train
training_ops gen_training_ops = ops.gen_ops
session_run_hook basic_session_run_hooks = train.hooks
monitored_session = train.monitored_session
session_manager = train.session_manager
input = train.input train.batching train
queue_runner queue_runner_impl = train.queue_runner
coordinator = train.coordinator
supervisor = train.supervisor
learning_rate_decay = train.decay
checkpoint_state_pb2 = protos.definitions
summary_io = train
server_lib device_setter = train.cluster train.server train
sync_replicas_optimizer = train.sync_replicas_optimizer

[python.util]
all_util keyword_args tf_contextlib tf_should_use = compat.util
decorator_utils tf_decorator = compat.decorators
dispatch = framework.dispatchers
deprecation lazy_loader = compat.%
object_identity = framework.object_identity
function_utils tf_inspect = compat.inspecting
tf_export = compat.exports
lock_util = compat.group_lock
tf_stack = compat.stacks
serialization = compat.json_types
compat = compat
nest = framework.nest
protobuf.compare = testing.messages

[python.summary]
summary = summary
summary_iterator = train
writer.writer writer.writer_cache writer.event_file_writer = summary
writer.event_file_writer.EventFileWriter = summary:_EventFileWriter
plugin_asset = summary_plugins
text_summary = summary_text summary_plugins

[python.layers]
core base convolutional layers maxout normalization pooling = layers
base.keras_style_scope = layers.scoped:keras_style_scope
base.set_keras_style = layers.scoped:set_keras_style
utils = layers.utils

[python.saved_model]
model_utils = estimator.export estimator.export_output estimator.mode_keys
model_utils.export_output = estimator.export_output
model_utils.export_utils = estimator.export
model_utils.mode_keys = estimator.mode_keys
builder constants loader main_op signature_constants signature_def_utils tag_constants utils = saved_model.%
builder_impl = saved_model.builder
loader_impl = saved_model.loader
main_op_impl = saved_model.main_op
signature_def_utils_impl = saved_model.signature_def_utils
reader = saved_model.utils
nested_structure_coder = saved_model.structures
utils_impl = saved_model.utils
saved_model simple_save = saved_model
save load save_context function_serialization = @

[python]
tpu.tpu_function tpu.tpu_optimizer tpu.bfloat16 tpu.ops.tpu_ops = contrib.tpu
tpu.tpu_strategy_util = @
pywrap_tensorflow pywrap_tensorflow_internal = compat.pywrap
profiler profiler.model_analyzer profiler.option_builder profiler.profiler profiler.tfprof_logger = profiler
graph_util = graph_util
saved_model = saved_model
summary = summary
data = data
estimator = estimator
keras = keras
tools = tools
debug = debug
feature_column feature_column.feature_column = feature_column
feature_column.feature_column_lib feature_column.feature_column_v2 = feature_column feature_column.layers
feature_column.dense_features feature_column.sequence_feature_column = layers.columns feature_column
feature_column.dense_features_v2 = layers.columns_v2
feature_column.serialization = feature_column.serialization
feature_column.utils = feature_column.features
data.ops.dataset_ops = data data.dataset data.named data.experimental
data.ops.dataset_ops.get_legacy_output_classes = data:get_output_classes
data.ops.dataset_ops.get_legacy_output_shapes = data:get_output_shapes
data.ops.dataset_ops.get_legacy_output_types = data:get_output_types
data.ops.dataset_ops.DatasetV1 data.ops.dataset_ops.DatasetV2 data.ops.dataset_ops.DatasetV1Adapter = data:Dataset
data.ops.dataset_ops.UnaryUnchangedStructureDataset = data.inner:UnaryUnchangedStructureDataset
data.ops.dataset_ops.get_structure = data.experimental:get_structure
data.ops.dataset_ops.DatasetSpec data.ops.dataset_ops.DatasetStructure = framework.type_spec:DatasetSpec
data.ops.iterator_ops.get_next_as_optional = data.experimental:get_next_as_optional
data.ops.iterator_ops = data.iterators
data.ops.readers = data.readers data
data.ops.readers.TFRecordDatasetV1 data.ops.readers.TFRecordDatasetV2 = data:TFRecordDataset
data.ops.readers.TextLineDatasetV1 data.ops.readers.TextLineDatasetV2 = data:TextLineDataset
data.ops.readers.FixedLengthRecordDatasetV1 data.ops.readers.FixedLengthRecordDatasetV2 = data:FixedLengthRecordDataset
data.util.nest = data.nest
data.util.convert data.util.random_seed data.util.sparse data.util.traverse = data.inner
data.util.options = data.inner data.options
data.util.structure = data.elements data.structure framework.type_spec
data.experimental = data.experimental
data.experimental.ops.cardinality = data.cardinality data.experimental
data.experimental.ops.batching data.experimental.ops.counter data.experimental.ops.error_ops = data.experimental
data.experimental.ops.get_single_element data.experimental.ops.grouping data.experimental.ops.iterator_ops = data.experimental
data.experimental.ops.interleave_ops = data.experimental data.named
data.experimental.ops.parsing_ops data.experimental.ops.prefetching_ops data.experimental.ops.random_ops data.experimental.ops.readers = data.experimental
data.experimental.ops.resampling data.experimental.ops.scan_ops data.experimental.ops.shuffle_ops data.experimental.ops.take_while_ops = data.experimental
data.experimental.ops.optimization_options data.experimental.ops.stats_options data.experimental.ops.threading_options = data.experimental
data.experimental.ops.optimization = data.running data.named
data.experimental.ops.stats_ops data.experimental.ops.sleep data.experimental.ops.threadpool = data.running
data.experimental.ops.stats_aggregator = data.running
data.experimental.ops.stats_aggregator.StatsAggregatorV1 = data.running:StatsAggregator
data.experimental.ops.matching_files = data.readers
data.experimental.ops.map_defun = data.map_defun
data.experimental.ops.distribute = data.named
data.experimental.ops.snapshot = data.snapshot
data.experimental.ops.indexed_dataset_ops = @
data.experimental.ops.unique data.experimental.ops.writers = data.experimental
data.ops.optional_ops = data.experimental
data.ops.multi_device_iterator_ops = data.multi_device data.iterators data.experimental
compat.compat = compat
compat.v2_compat tf2 = framework.behavior
autograph.core.ag_ctx = framework.autograph_status
autograph.core.converter autograph.core.naming autograph.pyct.anno autograph.pyct.compiler autograph.pyct.inspect_utils autograph.pyct.parser = @
autograph.converters.break_statements autograph.converters.continue_statements autograph.converters.return_statements = @
autograph.pyct.qual_names autograph.pyct.templates autograph.pyct.transformer autograph.pyct.common_transformers.anf = @
autograph.pyct.transformer.Base = framework.autograph_status:
module.module = module
tools.freeze_graph tools.inspect_checkpoint = tools.%
tools.saved_model_cli = tools.%
tools.strip_unused tools.strip_unused_lib = tools.strip_unused
tools.optimize_for_inference tools.optimize_for_inference_lib = tools.optimize_for_inference
tools.saved_model_utils = saved_model.utils
debug.wrappers debug.wrappers.local_cli_wrapper debug.wrappers.dumping_wrapper debug.wrappers.framework debug.wrappers.hooks debug.lib debug.lib.debug_data debug.cli = debug
user_ops.user_ops = ops.gen_ops

[python.estimator]
keras = keras.estimator
replicate_model_fn = contrib.replication
replicate_model_fn._TowerOptimizer = contrib.replication:TowerOptimizer
estimator estimator_lib = estimator.estimator estimator
model_fn = estimator.spec estimator estimator.export
model_fn.MetricKeys = estimator.keys:MetricKeys
run_config training exporter gc util = estimator.%
export export.export export.export_lib = estimator.export
export.export_output = estimator.export_output
inputs inputs.inputs inputs.numpy_io inputs.pandas_io = estimator.inputs
inputs.queues.feeding_functions = estimator.feeding_functions
canned.dnn canned.linear canned.dnn_linear_combined canned.baseline = estimator.canned
canned.head = estimator.heads
canned.boosted_trees = estimator.boosted_trees
canned.boosted_trees_utils = estimator.boosted_trees_utils
canned.metric_keys canned.prediction_keys = estimator.keys
canned.optimizers canned.parsing_utils = estimator.%

[python.keras]
_impl.keras = keras
metrics = keras.metrics keras.metric_base keras.metric_counts
api api._v1 = @
api.keras api._v1.keras = keras
optimizers = keras.optimizers_v1

distribute.distributed_training_utils = keras.engine.distributed
distribute.distribute_coordinator_utils distribute.multi_worker_training_state = @
premade.linear premade.wide_deep saving.saved_model.save saving.saved_model.load = @
saving.saving_utils = keras.engine.saving_utils
saving.saved_model_experimental = keras.exporting
saving saving.hdf5_format saving.save saving.model_config = keras.models keras.engine.saving

[python.distribute]
cluster_resolver = launch.resolvers launch.cloud_resolvers
cluster_resolver.cluster_resolver cluster_resolver.tfconfig_cluster_resolver cluster_resolver.slurm_cluster_resolver = launch.resolvers
cluster_resolver.kubernetes_cluster_resolver = launch.resolvers
cluster_resolver.gce_cluster_resolver cluster_resolver.tpu_cluster_resolver = launch.cloud_resolvers
combinations = testing.combinations
strategy_combinations = testing.strategies
tpu_strategy.TPUStrategy tpu_strategy.TPUStrategyV1 = framework.strategy:TPUStrategy
distribute_coordinator = launch.coordinate
distribute_coordinator_context multi_worker_util = train.tasks
device_util = framework.device_names
shared_variable_creator numpy_dataset = train.shared_variables
all_reduce = contrib.all_reduce
distribution_strategy_context distribute_lib mirrored_strategy one_device_strategy parameter_server_strategy central_storage_strategy = framework.strategy
cross_device_ops cross_device_utils reduce_util = framework.cross_device_ops
collective_all_reduce_strategy.CollectiveAllReduceStrategy = framework.strategy:MultiWorkerMirroredStrategy
collective_all_reduce_strategy tpu_strategy = @
input_lib = data.distributed
values = framework.replicated_values train.replicated_variables
input_ops = data.named
estimator_training summary_op_util = @
step_fn single_loss_example = testing.loss_steps

[keras]
activations applications backend callbacks callbacks_v1 constraints engine estimator experimental initializers layers losses metrics models optimizers preprocessing = %
regularizers utils wrappers = %
optimizer_v2.adadelta optimizer_v2.adagrad optimizer_v2.adam optimizer_v2.adamax optimizer_v2.ftrl optimizer_v2.gradient_descent = keras.optimizers
optimizer_v2.nadam optimizer_v2.optimizer_v2 optimizer_v2.rmsprop = keras.optimizers
optimizer_v2.learning_rate_schedule = keras.schedules
backend_config = keras.backend_settings
engine.input_spec = layers.nodes
engine.base_layer = layers.base layers.nodes layers.operations
engine.base_layer_utils = layers.casting layers.parts
utils.metrics_utils = keras.utils.metrics_utils keras.metric_counts
engine.sequential = keras.models
engine.node = layers.nodes
applications.densenet applications.imagenet_utils applications.inception_resnet_v2 applications.inception_v3 applications.mobilenet applications.mobilenet_v2 = %
applications.nasnet applications.resnet applications.resnet_v2 applications.vgg16 applications.vgg19 applications.xception = %
applications.resnet50 = keras.applications.resnet
engine.input_layer = keras.engine.inputs
engine.data_adapter engine.training_generator = %
engine.training_utils = keras.engine.training_utils keras.engine.training_data
engine.base_preprocessing_layer engine.base_preprocessing_layer_v1 = layers.preprocessing
utils.kernelized_utils utils.vis_utils utils.multi_gpu_utils = %
mixed_precision.experimental.loss_scale_optimizer = keras.loss_scale_optimizer
mixed_precision.experimental.policy mixed_precision.experimental.autocast_variable = layers.policies
utils.mode_keys = estimator.mode_keys
utils.mode_keys.ModeKeys = estimator.mode_keys:KerasModeKeys
mixed_precision.experimental.Policy = layers.policies:Policy
mixed_precision.experimental.global_policy = layers.policies:global_policy
mixed_precision.experimental.set_policy = layers.policies:set_policy
mixed_precision.experimental.LossScaleOptimizer = keras.loss_scale_optimizer:LossScaleOptimizer
datasets = keras_datasets
datasets.mnist datasets.fashion_mnist datasets.cifar10 datasets.cifar100 datasets.boston_housing datasets.imdb datasets.reuters = @
datasets.mnist.load_data = keras_datasets:_load_mnist
datasets.fashion_mnist.load_data = keras_datasets:_load_fashion
datasets.cifar10.load_data = keras_datasets:_load_cifar10
datasets.cifar100.load_data = keras_datasets:_load_cifar100
datasets.boston_housing.load_data = keras_datasets:_load_boston
datasets.imdb.load_data = keras_datasets:_load_imdb
datasets.imdb.get_word_index = keras_datasets:_imdb_words
datasets.reuters.load_data = keras_datasets:_load_reuters
datasets.reuters.get_word_index = keras_datasets:_reuters_words
wrappers.scikit_learn = keras.wrappers
Input = keras.engine.inputs:Input
Model Sequential = keras.models:

[layers.experimental]
keras_style_scope set_keras_style = layers.scoped:

[keras.layers]
preprocessing.normalization preprocessing.normalization_v1 = layers.preprocessing
kernelized = layers.kernelized
normalization_v2.BatchNormalization = layers.normalization:BatchNormalizationV2
rnn_cell_wrapper_v2 = layers.cell_wrappers
dense_attention = layers.attention
cudnn_recurrent = layers.recurrent_cudnn
serialization = layers.serialization
advanced_activations convolutional convolutional_recurrent core embeddings local merge noise normalization pooling recurrent recurrent_v2 wrappers = layers.%

[core]
framework.summary_pb2 framework.graph_pb2 framework.variable_pb2 framework.op_def_pb2 framework.api_def_pb2 framework.attr_value_pb2 framework.node_def_pb2 = protos.definitions
framework.tensor_pb2 framework.types_pb2 framework.tensor_shape_pb2 framework.step_stats_pb2 framework.function_pb2 framework.versions_pb2 framework.kernel_def_pb2 = protos.definitions
framework.device_attributes_pb2 framework.log_memory_pb2 framework.allocation_description_pb2 framework.tensor_description_pb2 = protos.definitions
framework.tensor_slice_pb2 framework.cost_graph_pb2 framework.resource_handle_pb2 = protos.definitions
protobuf.graph_debug_info_pb2 protobuf.config_pb2 protobuf.saver_pb2 protobuf.meta_graph_pb2 protobuf.rewriter_config_pb2 protobuf.queue_runner_pb2 protobuf.cluster_pb2 = protos.definitions
protobuf.tensorflow_server_pb2 protobuf.saved_model_pb2 protobuf.control_flow_pb2 protobuf.debug_pb2 protobuf.named_tensor_pb2 = protos.definitions
protobuf.tensor_bundle_pb2 protobuf.struct_pb2 protobuf.saved_object_graph_pb2 protobuf.verifier_config_pb2 protobuf.trackable_object_graph_pb2 = protos.definitions
example.example_pb2 example.feature_pb2 util.event_pb2 util.test_log_pb2 = protos.definitions
lib.core.error_codes_pb2 = protos.definitions
kernels.boosted_trees.boosted_trees_pb2 = protos.trees

[contrib]
framework.python.ops.audio_ops = audio
learn.python.learn.datasets.mnist learn.datasets.mnist = examples.tutorials.mnist.input_data
layers.python.layers layers.python.layers.summaries layers.python.layers.embedding_ops layers.python.layers.optimizers = contrib.layers
layers.python.layers.layers layers.python.layers.initializers layers.python.layers.regularizers = contrib.layers
layers.python.layers.encoders layers.python.layers.normalization = contrib.layers
layers.python.ops.sparse_ops layers.python.ops.sparse_feature_cross_op = contrib.layers_sparse
layers.python.layers.rev_block_lib = contrib.layers_reversible contrib.layers_memory
layers.python.layers.target_column = contrib.layers_targets
layers.python.layers.utils layers.utils slim.utils = contrib.layers_utils
layers.python.layers.feature_column layers.python.layers.feature_column_ops layers.feature_column = contrib.feature_columns
slim.python.slim = contrib.slim
framework.python.ops.variables framework.python.framework.checkpoint_utils = contrib.framework
training.python.training training.python.training.hparam training.python.training.evaluation training.python.training.training = contrib.training
data.python.framework.function = framework.function
data.python.ops data.python.ops.batching data.python.ops.counter data.python.ops.enumerate_ops data.python.ops.error_ops = contrib.data
data.python.ops.get_single_element data.python.ops.grouping data.python.ops.interleave_ops data.python.ops.iterator_ops = contrib.data
data.python.ops.parsing_ops data.python.ops.prefetching_ops data.python.ops.random_ops data.python.ops.readers = contrib.data
data.python.ops.resampling data.python.ops.scan_ops data.python.ops.shuffle_ops data.python.ops.sliding = contrib.data
data.python.ops.unique data.python.ops.writers = contrib.data
learn.python.learn.estimators.estimator = contrib.learn contrib.learn.estimators
learn.python.learn.estimators.model_fn = contrib.learn.model_fn contrib.learn
learn.python.learn.estimators.run_config = contrib.learn
learn.python.learn.monitored_session learn.monitored_session = train
layers.initializers layers.regularizers = contrib.layers
losses.metric_learning losses.python.metric_learning losses.python.metric_learning.metric_loss_ops = contrib.metric_learning
solvers.lanczos solvers.least_squares solvers.linear_equations solvers.util solvers.python.ops = contrib.solvers
solvers.python.ops.lanczos solvers.python.ops.least_squares solvers.python.ops.linear_equations solvers.python.ops.util = contrib.solvers
integrate.python.ops.odes = contrib.integrate
graph_editor = contrib.graph_editor
graph_editor.match graph_editor.tests.match = contrib.graph_editor.match
gan.python.namedtuples = contrib.gan.namedtuples
gan.python.train = contrib.gan.train contrib.gan.models contrib.gan.model_losses
gan.losses.wargs gan.python.losses.python.losses_impl gan.python.losses.python.losses_wargs = contrib.gan.losses_wargs
gan.python.losses.python.tuple_losses gan.python.losses.python.tuple_losses_impl = contrib.gan.losses
gan.python.eval.python.classifier_metrics gan.python.eval.python.classifier_metrics_impl = contrib.gan.classifier_metrics
gan.python.eval.python.eval_utils gan.python.eval.python.eval_utils_impl = contrib.gan.summaries
gan.python.eval.python.sliced_wasserstein gan.python.eval.python.sliced_wasserstein_impl = contrib.gan.sliced_wasserstein
gan.python.eval.python.summaries gan.python.eval.python.summaries_impl = contrib.gan.summaries
gan.python.features.python.clip_weights gan.python.features.python.clip_weights_impl = contrib.gan.features
gan.python.features.python.conditioning_utils gan.python.features.python.conditioning_utils_impl = contrib.gan.features
gan.python.features.python.random_tensor_pool gan.python.features.python.random_tensor_pool_impl = contrib.gan.features
gan.python.features.python.virtual_batchnorm gan.python.features.python.virtual_batchnorm_impl = contrib.gan.features
gan.python.estimator.python.gan_estimator gan.python.estimator.python.gan_estimator_impl = contrib.gan.gan_estimator
gan.python.estimator.python.head gan.python.estimator.python.head_impl = contrib.gan.gan_estimator
gan.python.estimator.python.stargan_estimator gan.python.estimator.python.stargan_estimator_impl = contrib.gan.stargan_estimator
rate rate.rate = contrib.rate
slim.learning slim.python.slim.learning = contrib.slim_learning
slim.evaluation slim.python.slim.evaluation = contrib.slim_evaluation
slim.model_analyzer slim.python.slim.model_analyzer = contrib.slim_model_analyzer
slim.nets slim.python.slim.nets = contrib.slim_nets
slim.nets.alexnet slim.nets.inception slim.nets.inception_v1 slim.nets.inception_v2 slim.nets.inception_v3 slim.nets.overfeat = contrib.slim_nets.%
slim.nets.resnet_utils slim.nets.resnet_v1 slim.nets.resnet_v2 slim.nets.vgg = contrib.slim_nets.%
slim.python.slim.nets.alexnet slim.python.slim.nets.inception slim.python.slim.nets.inception_v1 slim.python.slim.nets.inception_v2 = contrib.slim_nets.%
slim.python.slim.nets.inception_v3 slim.python.slim.nets.overfeat slim.python.slim.nets.resnet_utils slim.python.slim.nets.resnet_v1 = contrib.slim_nets.%
slim.python.slim.nets.resnet_v2 slim.python.slim.nets.vgg = contrib.slim_nets.%
slim.data_decoder slim.data_provider slim.dataset slim.dataset_data_provider slim.parallel_reader slim.prefetch_queue slim.queues = contrib.slim_data.%
slim.tfexample_decoder slim.python.slim.data.tfexample_decoder slim.python.slim.data.queues slim.python.slim.queues = contrib.slim_data.%
slim.python.slim.data.data_decoder slim.python.slim.data.data_provider slim.python.slim.data.dataset = contrib.slim_data.%
slim.python.slim.data.dataset_data_provider slim.python.slim.data.parallel_reader slim.python.slim.data.prefetch_queue = contrib.slim_data.%
metrics.python.ops.histogram_ops = contrib.metrics_histograms
learn.python.learn.monitors = contrib.learn.monitors
learn.python.learn.metric_spec = contrib.learn.metric_spec
learn.dataframe.queues.feeding_functions learn.python.learn.dataframe.queues.feeding_functions = estimator.feeding_functions
learn.dataframe learn.python.learn.dataframe = contrib.learn.dataframe
learn.dataframe.estimator_utils learn.python.learn.dataframe.estimator_utils = contrib.learn.dataframe.estimator_utils
learn.python.learn.dataframe.dataframe learn.python.learn.dataframe.tensorflow_dataframe learn.dataframe.tensorflow_dataframe = contrib.learn.dataframe.frame
learn.python.learn.dataframe.series learn.python.learn.dataframe.transform = contrib.learn.dataframe.series
learn.python.learn.dataframe.transforms.in_memory_source learn.python.learn.dataframe.transforms.reader_source = contrib.learn.dataframe.sources
learn.python.learn.dataframe.transforms.batch learn.python.learn.dataframe.transforms.binary_transforms learn.python.learn.dataframe.transforms.boolean_mask learn.python.learn.dataframe.transforms.csv_parser = contrib.learn.dataframe.transforms
learn.python.learn.dataframe.transforms.densify learn.python.learn.dataframe.transforms.difference learn.python.learn.dataframe.transforms.example_parser learn.python.learn.dataframe.transforms.hashes = contrib.learn.dataframe.transforms
learn.python.learn.dataframe.transforms.sparsify learn.python.learn.dataframe.transforms.split_mask learn.python.learn.dataframe.transforms.sum learn.python.learn.dataframe.transforms.unary_transforms = contrib.learn.dataframe.transforms
learn.python.learn.learn_runner = contrib.learn.learn_runner
learn.python.learn.estimators = contrib.learn
estimator.python.estimator.multi_head = contrib.estimator
estimator.python.estimator.early_stopping estimator.python.estimator.hooks = estimator.experimental
learn.python.learn.estimators._sklearn = contrib.learn.sklearn_like
learn.python.learn.estimators.test_data = contrib.learn.test_data
learn.python.learn.evaluable learn.python.learn.trainable = contrib.learn.contracts
learn.python.learn.learn_io learn.python.learn.learn_io.generator_io learn.python.learn.learn_io.pandas_io = contrib.learn.learn_io
learn.python.learn.learn_io.numpy_io learn.python.learn.learn_io.dask_io = contrib.learn.learn_io
learn.python.learn.learn_io.graph_io = contrib.learn.graph_io
learn.python.learn.learn_io.data_feeder = contrib.learn.data_feeder
learn.python.learn.models = contrib.learn.ops
learn.python.learn.experiment = contrib.learn.experiment
learn.python.learn.export_strategy = contrib.learn.export_strategy
learn.python.learn.graph_actions = contrib.learn.graph_actions
learn.python.learn.datasets learn.datasets = contrib.learn.datasets
learn.python.learn.datasets.synthetic learn.datasets.synthetic = contrib.learn.synthetic
learn.head learn.python.learn.estimators.head = contrib.learn.head contrib.learn.head_classes
learn.python.learn.estimators.constants learn.python.learn.estimators.metric_key learn.python.learn.estimators.prediction_key = contrib.learn.keys
learn.datasets.base learn.python.learn.datasets.base = contrib.learn.base
learn.datasets.text_datasets learn.python.learn.datasets.text_datasets = contrib.learn.text_datasets
training.python.training.python_input = contrib.python_input
training.python.training.sampling_ops = contrib.training_sampling contrib.training
training.python.training.resample = contrib.training_resampling
training.python.training.sequence_queueing_state_saver = contrib.training_sequences contrib.training_states
training.python.training.bucket_ops training.python.training.sgdr_learning_rate_decay = contrib.training
testing testing.python.framework.fake_summary_writer testing.python.framework.util_test = testing.summaries
keras.python.keras keras.api.keras = keras
rnn.python.ops.rnn_cell = contrib.rnn_cells contrib.rnn_grid_cells contrib.rnn_timed_cells contrib.rnn_light_cells contrib.rnn_normed_cells ops.rnn_cell
rnn.python.ops.core_rnn_cell = ops.rnn_cell
seq2seq.python.ops.beam_search_decoder = ops.beam_search contrib.seq2seq contrib.seq2seq_decoders
seq2seq.python.ops.attention_wrapper = contrib.seq2seq contrib.seq2seq_attention
seq2seq.python.ops.basic_decoder seq2seq.python.ops.decoder = contrib.seq2seq contrib.seq2seq_decoders
seq2seq.python.ops.helper seq2seq.python.ops.sampler = contrib.seq2seq_samplers contrib.seq2seq
rnn.python.ops.lstm_ops = contrib.rnn_block_cells
rnn.python.tools.checkpoint_convert = contrib.rnn_checkpoints

[nn]
rnn_cell = ops.rnn_cell

[models.rnn]
rnn_cell = ops.rnn_cell
rnn = ops.rnn
seq2seq = contrib.legacy_seq2seq
ptb translate = examples.models
ptb.reader = examples.models.reader
translate.data_utils = examples.models.data_utils

[g3doc.tutorials]
mnist = examples.tutorials.mnist
mnist.input_data mnist.mnist = examples.tutorials.%
"""


def _rows() -> Dict[str, str]:
    """{path below tensorflow: target}."""
    found: Dict[str, str] = {}
    prefix = ""
    for line in (_TEXT + names_of_2.TEXT).splitlines():
        if line.startswith("["):
            prefix = line[1:-1] + "." if line != "[]" else ""
        elif line.startswith(":"):
            for entry in line[1:].split():
                new, _, old = entry.partition("=")
                found[prefix + new] = ":" + (old or new)
        elif prefix == ":generated.":
            found.update((name, ":" + name) for name in line.split())  # the package has them (__init__.py)
        elif line:
            names, _, target = line.partition(" = ")
            for name in names.split():
                found[prefix + name] = _row(prefix, name, target)
    return found


def _row(prefix: str, name: str, target: str) -> str:
    last = name.rpartition(".")[2]
    if target == "%":  # the module of the same path
        return prefix + name
    if target == "^":  # what tf has under this name
        return ":" + (prefix + name)[len(_OF_2) :]
    if target.endswith(":"):
        return target + last
    if target == "examples.tutorials.%":
        return "examples.tutorials." + name
    return target.replace("%", last)


_OF_2 = "compat.v2."
TABLE = _rows()
_KERAS = (  # where its modules also are
    "python.keras._impl.keras.",
    "python.keras.api.keras.",
    "python.keras.api._v1.keras.",
    "python.keras.",
    "contrib.keras.python.keras.",
    "contrib.keras.api.keras.",
)
_PACKAGES = {path.rsplit(".", n)[0] for path in TABLE for n in range(1, path.count(".") + 1)}
_found: Dict[str, Any] = {}


_own_dictionary = vars(types.ModuleType)["__dict__"].__get__  # of a module, past what its class says


class _Names(Dict[str, Any]):
    """The dictionary of a joined module: what the module itself holds, and every name that it finds elsewhere, looked up when it is asked for."""

    def __init__(self, module: Any, own: Dict[str, Any]) -> None:
        super().__init__(own)
        self._module = module

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or isinstance(name, str) and hasattr(self._module, name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def _all(self) -> Dict[str, Any]:
        return {**{name: self[name] for name in dir(self._module) if name in self}, **dict(super().items())}

    def __iter__(self) -> Any:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def keys(self) -> Any:
        return self._all().keys()

    def values(self) -> Any:
        return self._all().values()

    def items(self) -> Any:
        return self._all().items()

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._module, name)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            setattr(self._module, name, value)


class Joined(types.ModuleType):
    """A module of this package under another path, or several as one: a name is looked for in each. Setting one sets it where it is."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return _Names(self, self._own())

    def _own(self) -> Dict[str, Any]:
        own: Dict[str, Any] = _own_dictionary(self)
        return own

    def __init__(self, path: str, parts: List[Any]) -> None:
        super().__init__("tensorflow." + path if path else "tensorflow", parts[0].__doc__ if parts else "Names of the package under those of TensorFlow.")
        self._own().update(_parts=parts, _path=path, _replaced={}, __path__=[])  # replaced: by name, whose it is and what it was before it was set
        if not path and parts:
            self._own()["__file__"] = parts[0].__file__

    def _inner(self, name: str) -> str:
        return self._path + "." + name if self._path else name

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            listed = getattr(self._parts[0], "__all__", None) if len(self._parts) == 1 else None
            return list(listed) if listed else [n for n in dir(self) if not n.startswith("_")]
        if name in ("__file__", "__wrapped__"):
            raise AttributeError(name)
        inner = self._inner(name)
        if inner in TABLE or inner in _PACKAGES:
            return find(inner)
        if name.startswith("gen_") and self._path.startswith("python.ops.") and "python.ops." + name in TABLE:  # whose functions it is made of
            return find("python.ops." + name)
        told = None
        for part in self._parts:
            try:
                return getattr(part, name)
            except not_provided.NotProvidedError as error:
                told = told or error
            except AttributeError:
                pass
        raise told or _absent(inner)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or not self._parts:
            super().__setattr__(name, value)
            return
        owner = next((part for part in self._parts if hasattr(part, name)), self._parts[0])
        if not isinstance(value, types.ModuleType):
            self._replaced.setdefault(name, (owner, [vars(owner)[name]] if name in vars(owner) else []))
            setattr(owner, name, value)
        elif name in self._replaced:  # as mock.patch leaves it
            setattr(self._replaced.pop(name)[0], name, value)
        elif isinstance(getattr(owner, name, value), types.ModuleType):  # the import system binds submodules
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._own():
            super().__delattr__(name)
        else:
            owner, before = self._replaced.pop(name, (next((part for part in self._parts if name in vars(part)), self._parts[0]), []))
            delattr(owner, name)
            for value in before:  # as mock.patch leaves it, which sees no attribute of its own here
                setattr(owner, name, value)

    def __dir__(self) -> List[str]:
        return sorted(set(under(self._path)).union(*(dir(part) for part in self._parts)) - ({"__file__"} - set(self._own())))


def _absent(path: str) -> AttributeError:
    known = not_provided.error(path)
    if known is None and path.startswith(_OF_2):
        return AttributeError("tf.%s is not provided by Millrace: look for tf.compat.v1.%s" % (path, path[len(_OF_2) :]))
    return known or AttributeError("tf.%s is not provided by Millrace" % path)


def _module(name: str) -> Any:
    return importlib.import_module("millrace" if name == "." else "millrace." + name)


def _telling(path: str, module: Any) -> Any:
    """A public module, which says of names that it lacks what to use instead. At its own path it also has what the table has below it."""
    own = vars(module).get("__getattr__")
    if not path.startswith("python") and isinstance(module, types.ModuleType) and module.__name__ != "millrace" and not hasattr(own, "tells"):
        own = module.__getattr__ = not_provided.getter(path, own)  # type: ignore[method-assign]
    if getattr(module, "__name__", "") == "millrace." + path and path in _PACKAGES and not hasattr(own, "asks_table"):
        module.__getattr__ = _with_table(path, own)  # type: ignore[method-assign]
    return module


def _with_table(path: str, own: Any) -> Any:
    """A module's __getattr__ that looks into the table first."""

    def get(name: str) -> Any:
        inner = path + "." + name
        if inner in TABLE or inner in _PACKAGES:
            return find(inner)
        if own is not None:
            return own(name)
        raise AttributeError("module 'millrace.%s' has no attribute %r" % (path, name))

    get.tells = get.asks_table = True  # type: ignore[attr-defined]
    return get


def find(path: str) -> Any:
    """What a path below `tensorflow` means: an object, a module, or several as one. AttributeError when it is not provided."""
    if path not in _found:
        _found[path] = _resolve(path)
    return _found[path]


def _parts_of_package(path: List[str]) -> List[Any]:
    """What a package without a row of its own holds beside the modules in it."""
    if path[0] != "contrib":
        return []
    parts = [find(".".join(path[:2]))] if path[2:3] == ["python"] else []  # where contrib's packages gather the names of their modules
    own = [part for part in path if part != "python"]
    try:
        return ([_module(".".join(own))] if len(own) > 2 else []) + parts
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("millrace."):
            raise
    return parts


def _resolve(path: str) -> Any:
    target = TABLE.get(path, "@" if path in _PACKAGES else None)
    if target is None:
        raise _absent(path)
    if target == "@":
        return Joined(path, _parts_of_package(path.split(".")))
    if ":" in target:
        module, _, attribute = target.partition(":")
        value = _module(module or ".")
        for part in attribute.split("."):
            value = getattr(value, part)
        return value
    parts = [_module(name) for name in target.split()]
    return _telling(path, parts[0]) if target == path or len(parts) == 1 and path not in _PACKAGES else Joined(path, parts)


def under(prefix: str) -> List[str]:
    """The names that the table has directly below a path."""
    start = prefix + "." if prefix else ""
    return sorted({p[len(start) :].split(".")[0] for p in TABLE if p.startswith(start)})


def generated() -> List[str]:
    """The names of the package whose functions are generated ones."""
    start = _TEXT.index("[:generated]") + len("[:generated]")
    return _TEXT[start : _TEXT.index("[", start)].split()


def module(path: str) -> Optional[types.ModuleType]:
    """The module of a path, also one that only the package's own files say; None when there is none."""
    if path in TABLE or path in _PACKAGES:
        found = find(path)
        return found if isinstance(found, types.ModuleType) else None
    if path.startswith(_OF_2) and ".".join(path.split(".")[:3]) in TABLE:  # a module inside of one that both have
        return module(path[len(_OF_2) :])
    alias = next((a for a in _KERAS if path.startswith(a)), None)
    if alias is not None:
        return module("keras." + path[len(alias) :])
    try:
        return importlib.import_module("millrace." + path)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("millrace"):
            raise
    parts = path.split(".")
    if (
        len(parts) > 2 and parts[0] == "contrib" and parts[2] == "python" and not (parts[-1][:1].isupper() or parts[-1].startswith("_"))
    ):  # where contrib's packages keep their modules
        home = ".".join(parts[:2])
        return module(next((inner for inner in (home + "." + part for part in parts[3:-1]) if inner in TABLE), home))
    return None
