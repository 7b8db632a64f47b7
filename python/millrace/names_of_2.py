# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of names (names.py) for tf.compat.v2, the names of TensorFlow 2 that 1.15 has: `^` is what tf has under the same name, the others
have other arguments, or mean something else, than that. Names that tf.compat.v2 lacks are not here: programs take them from tf.compat.v1.
"""

TEXT = """[compat.v2]
audio bitwise compat errors lookup quantization queue ragged sets signal sysconfig version nest dtypes distribute graph_util = ^
config raw_ops = ^
keras = keras
optimizers = keras.optimizers
losses = keras.losses
metrics = keras.metrics
AggregationMethod Assert CriticalSection DType GradientTape Graph IndexedSlices IndexedSlicesSpec Module Operation OptionalSpec RaggedTensor = ^
RaggedTensorSpec RegisterGradient SparseTensor SparseTensorSpec Tensor TensorArray TensorArraySpec TensorShape TensorSpec TypeSpec = ^
UnconnectedGradients VariableSynchronization abs acos acosh add add_n argsort as_dtype as_string asin asinh atan atan2 atanh bfloat16 bitcast = ^
bool broadcast_dynamic_shape broadcast_static_shape broadcast_to cast clip_by_global_norm clip_by_norm clip_by_value complex complex128 = ^
complex64 concat control_dependencies cos cosh cumsum custom_gradient divide double dynamic_partition dynamic_stitch edit_distance einsum = ^
enable_v2_behavior ensure_shape equal executing_eagerly exp extract_volume_patches eye fill fingerprint float16 float32 float64 floor foldl = ^
foldr function get_logger get_static_value grad_pass_through greater greater_equal group guarantee_const half histogram_fixed_width = ^
histogram_fixed_width_bins identity identity_n import_graph_def init_scope int16 int32 int64 int8 is_tensor less less_equal linspace = ^
load_library load_op_library logical_and logical_not logical_or make_ndarray make_tensor_proto map_fn matmul matrix_square_root maximum = ^
meshgrid minimum multiply negative newaxis no_gradient no_op nondifferentiable_batch_function not_equal numpy_function one_hot ones = ^
parallel_stack pow print py_function qint16 qint32 qint8 quint16 quint8 range rank realdiv recompute_grad register_tensor_conversion_function = ^
repeat required_space_to_batch_paddings reshape resource roll round saturate_cast scan scatter_nd searchsorted sequence_mask shape_n = ^
sigmoid sign sin sinh sort space_to_batch_nd split sqrt square stack stop_gradient strided_slice string subtract switch_case tan tanh = ^
tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_update tensordot tile timestamp truediv truncatediv truncatemod uint16 uint32 = ^
uint64 uint8 unique unique_with_counts unravel_index unstack variant vectorized_map zeros = ^
Variable = ops.variables_of_2:
VariableAggregation variable_creator_scope case = ^
: where=where_v2
DeviceSpec = framework.device:DeviceSpecV2
device name_scope = framework.scopes_of_2:
__version__ = framework.versions:
argmax argmin assert_equal assert_greater assert_less assert_rank boolean_mask cond constant convert_to_tensor = ops.arguments_of_2:%_v2
expand_dims gather gather_nd gradients hessians norm ones_like pad reduce_all reduce_any reduce_logsumexp reduce_max = ops.arguments_of_2:%_v2
reduce_mean reduce_min reduce_prod reduce_sum reverse_sequence shape size space_to_batch squeeze transpose tuple = ops.arguments_of_2:%_v2
while_loop zeros_like reverse slice = ops.arguments_of_2:%_v2
batch_to_space = ops.block_ops:%_v2
scalar_mul = ^
constant_initializer ones_initializer random_normal_initializer random_uniform_initializer zeros_initializer = ops.init_ops_v2:

[compat.v2.optimizers]
schedules = keras.schedules

[compat.v2.losses]
Reduction = keras.utils.losses_utils:ReductionV2

[compat.v2.keras]
backend callbacks estimator initializers layers losses = keras.%
backend.name_scope = framework.scopes_of_2:
callbacks.TensorBoard estimator.model_to_estimator = missing_of_2:
layers.BatchNormalization = layers.normalization:BatchNormalizationV2
layers.DenseFeatures = layers.columns_v2:
layers.GRU layers.GRUCell layers.LSTM layers.LSTMCell = layers.recurrent_v2:
losses.Reduction = keras.utils.losses_utils:ReductionV2

[compat.v2.keras.initializers]
Constant GlorotNormal GlorotUniform Identity Initializer Ones Orthogonal RandomNormal RandomUniform TruncatedNormal = ops.init_ops_v2:
VarianceScaling Zeros he_normal he_uniform lecun_normal lecun_uniform = ops.init_ops_v2:
constant = ops.init_ops_v2:Constant
glorot_normal = ops.init_ops_v2:GlorotNormal
glorot_uniform = ops.init_ops_v2:GlorotUniform
identity = ops.init_ops_v2:Identity
ones = ops.init_ops_v2:Ones
orthogonal = ops.init_ops_v2:Orthogonal
zeros = ops.init_ops_v2:Zeros

[compat.v2.data]
DatasetSpec Options = ^
Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset = ^

[compat.v2.data.experimental]
AUTOTUNE CheckpointInputPipelineHook DistributeOptions INFINITE_CARDINALITY MapVectorizationOptions OptimizationOptions Optional Reducer = ^
StatsOptions TFRecordWriter ThreadingOptions UNKNOWN_CARDINALITY bucket_by_sequence_length bytes_produced_stats cardinality copy_to_device = ^
dense_to_sparse_batch enumerate_dataset from_variant get_next_as_optional get_single_element get_structure group_by_reducer group_by_window = ^
ignore_errors latency_stats make_saveable_from_iterator map_and_batch parallel_interleave parse_example_dataset prefetch_to_device = ^
rejection_resample scan shuffle_and_repeat take_while to_variant unbatch unique = ^
Counter CsvDataset RandomDataset SqlDataset StatsAggregator choose_from_datasets make_batched_features_dataset make_csv_dataset = ^
sample_from_datasets = ^

[compat.v2.debugging]
Assert assert_proper_iterable assert_same_float_dtype check_numerics get_log_device_placement is_numeric_tensor set_log_device_placement = ^
assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less assert_less_equal = ops.arguments_of_2:%_v2
assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive assert_rank = ops.arguments_of_2:%_v2
assert_rank_at_least assert_rank_in assert_scalar assert_type = ops.arguments_of_2:%_v2
assert_shapes = ^

[compat.v2.estimator]
BaselineClassifier BaselineEstimator BaselineRegressor DNNClassifier DNNEstimator DNNRegressor LinearClassifier LinearEstimator = missing_of_2:
DNNLinearCombinedClassifier DNNLinearCombinedEstimator DNNLinearCombinedRegressor LinearRegressor = missing_of_2:
BestExporter BinaryClassHead BoostedTreesClassifier BoostedTreesEstimator BoostedTreesRegressor CheckpointSaverHook CheckpointSaverListener = ^
EstimatorSpec EvalSpec Exporter FeedFnHook FinalExporter FinalOpsHook GlobalStepWaiterHook Head LatestExporter LoggingTensorHook = ^
LogisticRegressionHead ModeKeys MultiClassHead MultiHead MultiLabelHead NanLossDuringTrainingError NanTensorHook PoissonRegressionHead = ^
ProfilerHook RegressionHead RunConfig SecondOrStepTimer SessionRunArgs SessionRunContext SessionRunHook SessionRunValues StepCounterHook = ^
StopAtStepHook SummarySaverHook TrainSpec VocabInfo WarmStartSettings add_metrics train_and_evaluate = ^
Estimator = ^
classifier_parse_example_spec regressor_parse_example_spec = ^

[compat.v2.estimator.experimental]
InMemoryEvaluatorHook LinearSDCA build_raw_supervised_input_receiver_fn call_logit_fn make_early_stopping_hook = ^
make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook stop_if_no_decrease_hook stop_if_no_increase_hook = ^

[compat.v2.estimator.export]
ClassificationOutput ExportOutput PredictOutput RegressionOutput ServingInputReceiver TensorServingInputReceiver = ^
build_parsing_serving_input_receiver_fn build_raw_serving_input_receiver_fn = ^

[compat.v2.feature_column]
bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity categorical_column_with_vocabulary_list crossed_column = ^
embedding_column indicator_column numeric_column sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity = ^
sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list sequence_numeric_column = ^
weighted_categorical_column = ^
categorical_column_with_vocabulary_file make_parse_example_spec = feature_column:%_v2
shared_embeddings = feature_column:shared_embedding_columns_v2

[compat.v2.image]
adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation central_crop combined_non_max_suppression = ^
convert_image_dtype crop_to_bounding_box decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png = ^
extract_jpeg_shape extract_patches flip_left_right flip_up_down grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg non_max_suppression = ^
non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores pad_to_bounding_box per_image_standardization psnr = ^
random_brightness random_contrast random_crop random_flip_left_right random_flip_up_down random_hue random_jpeg_quality random_saturation = ^
resize_with_crop_or_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv rot90 sobel_edges ssim ssim_multiscale total_variation transpose = ^
yiq_to_rgb yuv_to_rgb = ^
ResizeMethod = ops.image_resize:ResizeMethodV2
resize = ops.image_resize:resize_images_v2
resize_with_pad = ops.image_resize:resize_image_with_pad_v2
crop_and_resize draw_bounding_boxes = ops.arguments_of_2:%_v2
extract_glimpse sample_distorted_bounding_box = ops.image_boxes:%_v2

[compat.v2.initializers]
Constant GlorotNormal GlorotUniform Identity Initializer Ones Orthogonal RandomNormal RandomUniform TruncatedNormal = ops.init_ops_v2:
VarianceScaling Zeros he_normal he_uniform lecun_normal lecun_uniform = ops.init_ops_v2:
constant = ops.init_ops_v2:Constant
glorot_normal = ops.init_ops_v2:GlorotNormal
glorot_uniform = ops.init_ops_v2:GlorotUniform
identity = ops.init_ops_v2:Identity
ones = ops.init_ops_v2:Ones
orthogonal = ops.init_ops_v2:Orthogonal
zeros = ops.init_ops_v2:Zeros
get serialize deserialize = keras.initializers:

[compat.v2.io]
FixedLenFeature FixedLenSequenceFeature SparseFeature TFRecordOptions TFRecordWriter VarLenFeature decode_and_crop_jpeg decode_base64 = ^
decode_bmp decode_compressed decode_gif decode_image decode_jpeg decode_json_example decode_png deserialize_many_sparse = ^
encode_base64 encode_jpeg extract_jpeg_shape is_jpeg match_filenames_once matching_files parse_sequence_example = ^
parse_single_sequence_example parse_tensor read_file serialize_tensor write_file write_graph = ^
decode_csv decode_raw parse_example parse_single_example serialize_many_sparse serialize_sparse = ops.arguments_of_2:%_v2

[compat.v2.io.gfile]
GFile copy exists glob isdir listdir makedirs mkdir remove rename rmtree stat walk = ^

[compat.v2.linalg]
LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D = ^
LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder LinearOperatorIdentity LinearOperatorInversion = ^
LinearOperatorKronecker LinearOperatorLowRankUpdate LinearOperatorLowerTriangular LinearOperatorScaledIdentity LinearOperatorToeplitz = ^
LinearOperatorZeros adjoint band_part cholesky cholesky_solve cross det diag diag_part eigh eigvalsh einsum expm eye global_norm inv logdet = ^
logm lstsq lu matmul matrix_rank matrix_transpose matvec normalize pinv qr set_diag slogdet solve sqrtm svd tensor_diag tensor_diag_part = ^
tensordot trace triangular_solve tridiagonal_matmul tridiagonal_solve = ^
l2_normalize norm = ops.arguments_of_2:%_v2

[compat.v2.math]
reduce_euclidean_norm = ops.arguments_of_2:%_v2
abs accumulate_n acos acosh add add_n angle asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc ceil conj cos cosh = ^
cumprod cumsum cumulative_logsumexp digamma divide divide_no_nan equal erf erfc exp expm1 floor floordiv floormod greater greater_equal igamma = ^
igammac imag invert_permutation is_finite is_inf is_nan is_non_decreasing is_strictly_increasing lbeta less less_equal lgamma log log1p = ^
log_sigmoid logical_and logical_not logical_or logical_xor maximum minimum mod multiply multiply_no_nan negative nextafter not_equal polygamma = ^
polyval pow real reciprocal reciprocal_no_nan reduce_std reduce_variance rint round rsqrt segment_max segment_mean = ^
segment_min segment_prod segment_sum sigmoid sign sin sinh softplus softsign sqrt square squared_difference subtract tan tanh top_k truediv = ^
unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlogy = ^
zero_fraction zeta = ^
argmax argmin confusion_matrix count_nonzero in_top_k l2_normalize log_softmax reduce_all reduce_any reduce_logsumexp = ops.arguments_of_2:%_v2
reduce_max reduce_mean reduce_min reduce_prod reduce_sum softmax = ops.arguments_of_2:%_v2
scalar_mul = ^
bincount = ops.math_ops:%_v2

[compat.v2.nn]
all_candidate_sampler atrous_conv2d atrous_conv2d_transpose avg_pool1d avg_pool3d batch_normalization bias_add collapse_repeated = ^
compute_accidental_hits compute_average_loss conv1d_transpose conv_transpose ctc_greedy_decoder ctc_unique_labels = ^
depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input elu fixed_unigram_candidate_sampler l2_loss leaky_relu = ^
learned_unigram_candidate_sampler local_response_normalization log_poisson_loss lrn max_pool1d max_pool2d max_pool3d normalize_moments relu = ^
relu6 scale_regularization_loss selu sigmoid softplus softsign swish tanh top_k with_space_to_batch zero_fraction = ^
RNNCellDeviceWrapper = layers.cell_wrappers:DeviceWrapper
RNNCellDropoutWrapper = layers.cell_wrappers:DropoutWrapper
RNNCellResidualWrapper = layers.cell_wrappers:ResidualWrapper
avg_pool2d batch_norm_with_global_normalization conv1d conv2d conv2d_transpose conv3d conv3d_transpose convolution crelu = ops.arguments_of_2:%_v2
depth_to_space depthwise_conv2d dropout embedding_lookup embedding_lookup_sparse in_top_k l2_normalize log_softmax = ops.arguments_of_2:%_v2
max_pool_with_argmax moments nce_loss pool safe_embedding_lookup_sparse sampled_softmax_loss separable_conv2d = ops.arguments_of_2:%_v2
sigmoid_cross_entropy_with_logits softmax space_to_batch space_to_depth sparse_softmax_cross_entropy_with_logits = ops.arguments_of_2:%_v2
sufficient_statistics weighted_cross_entropy_with_logits weighted_moments = ops.arguments_of_2:%_v2
softmax_cross_entropy_with_logits = ops.arguments_of_2:%_v2
avg_pool fractional_avg_pool fractional_max_pool max_pool = ops.pool_ops:%_v2
dilation2d erosion2d = ops.morphology:%_v2
ctc_beam_search_decoder ctc_loss = ops.ctc_ops:%_v2

[compat.v2.random]
all_candidate_sampler categorical fixed_unigram_candidate_sampler gamma learned_unigram_candidate_sampler log_uniform_candidate_sampler normal = ^
shuffle stateless_categorical stateless_normal stateless_truncated_normal stateless_uniform truncated_normal uniform uniform_candidate_sampler = ^
poisson = ops.arguments_of_2:random_poisson_v2
set_seed = framework.random_seed:set_random_seed

[compat.v2.random.experimental]
Generator create_rng_state get_global_generator set_global_generator = ^

[compat.v2.saved_model]
ASSETS_DIRECTORY ASSETS_KEY CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES = ^
DEFAULT_SERVING_SIGNATURE_DEF_KEY GPU PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS = ^
SAVED_MODEL_FILENAME_PB SAVED_MODEL_FILENAME_PBTXT SAVED_MODEL_SCHEMA_VERSION SERVING TPU TRAINING VARIABLES_DIRECTORY VARIABLES_FILENAME = ^
contains_saved_model = ^

[compat.v2.sparse]
SparseTensor cross cross_hashed expand_dims eye fill_empty_rows from_dense mask maximum minimum reorder reset_shape reshape retain slice = ^
softmax sparse_dense_matmul to_dense to_indicator transpose = ^
add concat segment_mean segment_sqrt_n segment_sum split = ops.arguments_of_2:sparse_%_v2
reduce_max reduce_sum = ops.sparse_math_ops:sparse_%_v2

[compat.v2.strings]
as_string bytes_split format join lower ngrams regex_full_match regex_replace strip to_hash_bucket_fast to_hash_bucket_strong unicode_decode = ^
unicode_decode_with_offsets unicode_encode unicode_script unicode_split unicode_split_with_offsets unicode_transcode unsorted_segment_join = ^
upper = ^
length split = ops.arguments_of_2:string_%_v2
reduce_join substr = ops.arguments_of_2:%_v2
to_hash_bucket to_number = ops.arguments_of_2:string_%_v2

[compat.v2.test]
Benchmark TestCase benchmark_config create_local_cluster gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm = ^
is_gpu_available main = ^
assert_equal_graph_def = ops.arguments_of_2:%_v2
compute_gradient = testing.gradient_checker_v2:

[compat.v2.train]
BytesList CheckpointManager ClusterDef ClusterSpec Coordinator Example ExponentialMovingAverage Feature FeatureList FeatureLists Features = ^
FloatList Int64List JobDef SequenceExample ServerDef checkpoints_iterator get_checkpoint_state latest_checkpoint list_variables load_checkpoint = ^
load_variable = ^
Checkpoint = ^

[compat.v2.train.experimental]
DynamicLossScale FixedLossScale LossScale = ^
disable_mixed_precision_graph_rewrite enable_mixed_precision_graph_rewrite = ^

[compat.v2.summary.experimental]
get_step set_step summary_scope write_raw_pb = ops.summary_writers:

[compat.v2.summary]
SummaryWriter create_noop_writer flush record_if trace_export trace_off trace_on write = ops.summary_writers:
create_file_writer = ops.summary_writers:create_file_writer_v2
audio histogram image scalar text = summary_of_2:
"""
