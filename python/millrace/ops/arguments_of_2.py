# SPDX-License-Identifier: Apache-2.0
"""Functions with the arguments of TensorFlow 2, which 1.15 has within its modules (`nn_ops.dropout_v2`): what they do is that of the function of 1.x."""

from __future__ import annotations

import ast
import importlib
import inspect
from typing import Any, Callable, Dict

from millrace.framework import dispatch
from millrace.framework.errors import at_user_line

# A row is the module and name of the function of 1.x (`name=old` where the later one is called otherwise), then the parameters by their places:
# `new=old` is called otherwise there, `!` says that it must be given, `?value` what it is when it is not (else the default of 1.x), `old:value` is no
# parameter but always this.
_TEXT = """
ops.array_ops expand_dims input! axis! name
ops.array_ops squeeze input! axis name
ops.array_ops shape input! out_type name
ops.array_ops size input! out_type name
ops.array_ops zeros_like input=tensor! dtype name
ops.array_ops ones_like input=tensor! dtype name
ops.array_ops transpose a! perm conjugate name
ops.array_ops pad tensor! paddings! mode constant_values name
ops.gather_ops gather params! indices! validate_indices axis batch_dims name
ops.array_ops boolean_mask tensor! mask! axis name
ops.math_ops argmax input! axis output_type name
ops.math_ops argmin input! axis output_type name
ops.math_ops count_nonzero input! axis keepdims dtype name
ops.nn_ops softmax logits! axis name
ops.nn_ops log_softmax logits! axis name
ops.nn_ops l2_normalize x! axis epsilon name
ops.nn_ops dropout x! rate! noise_shape seed name
ops.nn_ops moments x! axes! shift keepdims?False name
ops.nn_ops sparse_softmax_cross_entropy_with_logits labels! logits! name
ops.nn_ops sigmoid_cross_entropy_with_logits labels logits name
ops.nn_ops conv2d_transpose input! filters! output_shape! strides! padding data_format dilations name
ops.nn_ops conv3d_transpose input! filters! output_shape! strides! padding data_format dilations name
ops.candidate_sampling nce_loss weights! biases! labels! inputs! num_sampled! num_classes! num_true sampled_values remove_accidental_hits name partition_strategy:div
ops.candidate_sampling sampled_softmax_loss weights! biases! labels! inputs! num_sampled! num_classes! num_true sampled_values remove_accidental_hits seed name partition_strategy:div
ops.nn_ops embedding_lookup params! ids! max_norm name partition_strategy:div
ops.nn_ops embedding_lookup_sparse params! sp_ids! sp_weights! combiner max_norm name partition_strategy:div
ops.matrix_ops norm tensor! ord axis keepdims name
ops.check_ops assert_negative x! message summarize name
ops.check_ops assert_positive x! message summarize name
ops.check_ops assert_non_negative x! message summarize name
ops.check_ops assert_non_positive x! message summarize name
ops.check_ops assert_equal x! y! message summarize name
ops.check_ops assert_none_equal x! y! summarize message name
ops.derived_ops assert_near x! y! rtol atol message summarize name
ops.check_ops assert_less x! y! message summarize name
ops.check_ops assert_less_equal x! y! message summarize name
ops.check_ops assert_greater x! y! message summarize name
ops.check_ops assert_greater_equal x! y! message summarize name
ops.check_ops assert_rank x! rank! message name
ops.check_ops assert_rank_at_least x! rank! message name
ops.check_ops assert_rank_in x! ranks! message name
ops.check_ops assert_integer x! message name
ops.check_ops assert_type tensor! tf_type! message name
ops.check_ops assert_scalar tensor! message name
ops.control_flow_ops assert_all_finite=verify_tensor_all_finite x! message! name
ops.math_ops reduce_all input_tensor! axis keepdims?False name
ops.math_ops reduce_any input_tensor! axis keepdims?False name
ops.math_ops reduce_logsumexp input_tensor! axis keepdims?False name
ops.math_ops reduce_max input_tensor! axis keepdims?False name
ops.math_ops reduce_mean input_tensor! axis keepdims?False name
ops.math_ops reduce_min input_tensor! axis keepdims?False name
ops.math_ops reduce_prod input_tensor! axis keepdims?False name
ops.math_ops reduce_sum input_tensor! axis keepdims?False name
ops.confusion_matrix confusion_matrix labels! predictions! num_classes weights dtype name
ops.nn_ops in_top_k targets! predictions! k! name
framework.convert convert_to_tensor value! dtype dtype_hint name
framework.convert constant value! dtype shape name
ops.control_flow_ops cond pred! true_fn false_fn name strict:True
ops.control_flow_ops while_loop cond! body! loop_vars! shape_invariants parallel_iterations back_prop swap_memory maximum_iterations name return_same_structure:True
ops.control_flow_ops tuple tensors! control_inputs name
ops.gradients gradients ys! xs! grad_ys name gate_gradients aggregation_method stop_gradients unconnected_gradients colocate_gradients_with_ops:True
ops.gradients hessians ys! xs! gate_gradients aggregation_method name colocate_gradients_with_ops:True
ops.gather_ops gather_nd params! indices! batch_dims name
ops.array_ops reverse_sequence input! seq_lengths! seq_axis batch_axis name
ops.array_ops reverse tensor! axis! name
ops.array_ops slice input_! begin! size! name
ops.tensor_scatter reduce_euclidean_norm input_tensor! axis keepdims?False name
ops.gen_ops space_to_batch=space_to_batch_nd input! block_shape! paddings! name
ops.block_ops space_to_depth input! block_size! data_format name
ops.block_ops depth_to_space input! block_size! data_format name
ops.block_ops sparse_segment_mean data! indices! segment_ids! num_segments name
ops.block_ops sparse_segment_sqrt_n data! indices! segment_ids! num_segments name
ops.block_ops sparse_segment_sum data! indices! segment_ids! num_segments name
ops.sparse_math_ops sparse_add a! b! threshold?0
ops.sparse_math_ops sparse_concat axis! sp_inputs! expand_nonconcat_dims?False name?None
ops.sparse_math_ops sparse_split sp_input?None num_split?None axis?None name?None
ops.sparse_math_ops serialize_sparse sp_input! out_type name
ops.sparse_math_ops serialize_many_sparse sp_input! out_type name
ops.derived_ops random_poisson shape! lam! dtype seed name
ops.string_ops string_length input! unit name
ops.string_ops substr input! pos! len! unit name
ops.string_ops reduce_join inputs! axis keepdims?False separator name
ops.string_ops string_to_number input! out_type name
ops.string_ops decode_raw input_bytes! out_type! little_endian fixed_length name
ops.block_ops string_to_hash_bucket input! num_buckets! name
ops.ragged.strings string_split=split input! sep maxsplit name result_type:RaggedTensor
ops.parsing_ops decode_csv records! record_defaults! field_delim use_quote_delim na_value select_cols name
ops.parsing_ops parse_example serialized! features! example_names name
ops.parsing_ops parse_single_example serialized! features! example_names name
ops.image_boxes crop_and_resize image! boxes! box_indices! crop_size! method extrapolation_value name
ops.image_boxes draw_bounding_boxes images! boxes! colors! name
ops.window_ops conv1d input! filters! stride! padding! data_format?NWC dilations name
ops.conv_ops conv2d input! filters! strides! padding! data_format?NHWC dilations?None name
ops.conv_ops conv3d input! filters! strides! padding! data_format dilations?None name
ops.window_ops convolution input! filters! strides padding?VALID data_format dilations name
ops.conv_ops depthwise_conv2d input! filter! strides! padding! data_format dilations name
ops.conv_ops separable_conv2d input! depthwise_filter! pointwise_filter! strides! padding! data_format dilations name
ops.conv_ops max_pool_with_argmax input! ksize! strides! padding! data_format output_dtype?'int64' include_batch_in_index name
ops.conv_ops avg_pool2d=avg_pool input! ksize! strides! padding! data_format name
ops.window_ops pool input! window_shape! pooling_type! strides padding?VALID data_format dilations name
ops.nn_ops softmax_cross_entropy_with_logits=softmax_cross_entropy_with_logits_v2 labels! logits! axis?-1 name
ops.nn_ops crelu features! axis name
testing.graph_defs assert_equal_graph_def expected! actual!
ops.nn_ops batch_norm_with_global_normalization input! mean! variance! beta! gamma! variance_epsilon! scale_after_normalization! name
ops.nn_ops weighted_cross_entropy_with_logits labels! logits! pos_weight! name
ops.moments sufficient_statistics x! axes! shift keepdims?False name
ops.moments weighted_moments x! axes! frequency_weights! keepdims?False name
ops.sparse_lookup safe_embedding_lookup_sparse embedding_weights! sparse_ids! sparse_weights combiner?mean default_id max_norm name partition_strategy:div
"""


def _rows() -> Dict[str, Any]:
    rows = (line.split() for line in _TEXT.strip().splitlines())
    return {name.partition("=")[0] + "_v2": (module, name, parts) for module, name, *parts in rows}


_ROWS = _rows()


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:  # a word
        return text


def _made(module: str, names: str, parts: Any) -> Callable[..., Any]:
    name, _, older = names.partition("=")
    older = older or name
    function = getattr(importlib.import_module("millrace." + module), older)
    if older in dispatch.NAMES:
        function = dispatch.wrapped(function, older)
    fixed = {key: _value(value) for key, _, value in (part.partition(":") for part in parts if ":" in part)}
    old, places, more = {}, [], dict(fixed)
    defaults = {key: p.default for key, p in inspect.signature(function).parameters.items()}
    for part in parts:
        if ":" not in part:
            stem, otherwise, value = part.partition("?")
            new, _, was = stem.rstrip("!").partition("=")
            old[new] = was or new
            default = _value(value) if otherwise else inspect.Parameter.empty if part.endswith("!") else defaults[old[new]]
            if otherwise:
                more[old[new]] = default
            places.append(inspect.Parameter(new, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    signature = inspect.Signature(places)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise at_user_line(TypeError("%s_v2(): %s" % (name, error))) from None
        return function(**{**more, **{old[key]: value for key, value in given.items()}})

    call.__name__ = call.__qualname__ = name + "_v2"
    call.__doc__ = "%s with the arguments of TensorFlow 2." % name
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def __getattr__(name: str) -> Any:
    if name not in _ROWS:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    made = globals()[name] = _made(*_ROWS[name])
    return made
