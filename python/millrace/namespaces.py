# SPDX-License-Identifier: Apache-2.0
"""The namespaces that TensorFlow 1.5 to 1.15 sorted its names into: tf.math, tf.random, tf.io and others. Each is a list of names of
the package; `new=old` where the two differ, with old below tf."""
from __future__ import annotations

import importlib
import sys
import types
from typing import Any, Dict

_TABLE: Dict[str, str] = {
    "math": """abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc
        bincount ceil confusion_matrix conj cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma divide divide_no_nan=div_no_nan equal erf
        erfc exp expm1 floor floordiv floormod greater greater_equal igamma igammac imag in_top_k=nn.in_top_k invert_permutation is_finite
        is_inf is_nan is_non_decreasing is_strictly_increasing l2_normalize=nn.l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid
        log_softmax=nn.log_softmax logical_and logical_not logical_or logical_xor maximum minimum mod multiply multiply_no_nan
        negative not_equal polygamma polyval pow real reciprocal reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min
        reduce_prod reduce_std reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min
        segment_prod segment_sum sigmoid sign sin sinh softmax=nn.softmax softplus=nn.softplus softsign=nn.softsign sqrt square squared_difference
        subtract tan tanh top_k=nn.top_k truediv unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
        unsorted_segment_sqrt_n unsorted_segment_sum xdivy xlogy zero_fraction=nn.zero_fraction zeta""",
    "random": """all_candidate_sampler=nn.all_candidate_sampler categorical=multinomial multinomial gamma=random_gamma get_seed
        log_uniform_candidate_sampler=nn.log_uniform_candidate_sampler fixed_unigram_candidate_sampler=nn.fixed_unigram_candidate_sampler
        learned_unigram_candidate_sampler=nn.learned_unigram_candidate_sampler uniform_candidate_sampler=nn.uniform_candidate_sampler
        normal=random_normal poisson=random_poisson set_random_seed shuffle=random_shuffle stateless_multinomial
        stateless_normal=stateless_random_normal stateless_truncated_normal stateless_uniform=stateless_random_uniform truncated_normal
        uniform=random_uniform""",
    "io": """FixedLenFeature FixedLenSequenceFeature PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue SparseFeature
        TFRecordCompressionType=python_io.TFRecordCompressionType TFRecordOptions=python_io.TFRecordOptions
        TFRecordWriter=python_io.TFRecordWriter VarLenFeature decode_and_crop_jpeg=image.decode_and_crop_jpeg decode_base64 decode_bmp=image.decode_bmp
        decode_compressed decode_csv decode_gif=image.decode_gif decode_image=image.decode_image decode_jpeg=image.decode_jpeg decode_json_example
        decode_png=image.decode_png decode_raw encode_base64 encode_jpeg=image.encode_jpeg encode_png=image.encode_png
        extract_jpeg_shape=image.extract_jpeg_shape gfile match_filenames_once=train.match_filenames_once matching_files parse_example
        parse_single_example parse_single_sequence_example parse_tensor read_file serialize_many_sparse serialize_sparse
        serialize_tensor deserialize_many_sparse
        tf_record_iterator=python_io.tf_record_iterator write_file write_graph=train.write_graph""",
    "sparse": """SparseTensor add=sparse_add concat=sparse_concat expand_dims=sparse_expand_dims fill_empty_rows=sparse_fill_empty_rows
        from_dense=contrib.layers.dense_to_sparse mask=sparse_mask matmul=sparse_tensor_dense_matmul maximum=sparse_maximum merge=sparse_merge
        minimum=sparse_minimum placeholder=sparse_placeholder reduce_max=sparse_reduce_max reduce_max_sparse=sparse_reduce_max_sparse
        reduce_sum=sparse_reduce_sum reduce_sum_sparse=sparse_reduce_sum_sparse
        reorder=sparse_reorder reset_shape=sparse_reset_shape reshape=sparse_reshape retain=sparse_retain segment_mean=sparse_segment_mean
        segment_sqrt_n=sparse_segment_sqrt_n segment_sum=sparse_segment_sum slice=sparse_slice softmax=sparse_softmax
        sparse_dense_matmul=sparse_tensor_dense_matmul split=sparse_split to_dense=sparse_tensor_to_dense to_indicator=sparse_to_indicator
        transpose=sparse_transpose""",
    "dtypes": """DType QUANTIZED_DTYPES as_dtype as_string bfloat16 bool cast complex complex128 complex64 double float16 float32 float64 half int16
        int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource saturate_cast string uint16 uint32 uint64 uint8 variant""",
    "debugging": """Assert assert_all_finite=verify_tensor_all_finite assert_equal assert_greater assert_greater_equal assert_integer assert_less
        assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive
        assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_type check_numerics
        is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing""",
    "strings": """as_string format=string_format join=string_join length=string_length reduce_join regex_full_match=ops.string_ops.regex_full_match regex_replace
        unicode_transcode=ops.string_ops.unicode_transcode unsorted_segment_join=ops.string_ops.unsorted_segment_join
        split=string_split strip=string_strip substr to_hash_bucket=string_to_hash_bucket to_hash_bucket_fast=string_to_hash_bucket_fast
        to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number""",
    "bitwise": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift",
    "queue": "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
    "manip": "batch_to_space_nd gather_nd reshape reverse roll scatter_nd space_to_batch_nd tile",
}


class _Namespace(types.ModuleType):
    def __init__(self, name: str, listed: str) -> None:
        super().__init__("millrace." + name, "tf.%s: names of the package under those of TensorFlow 1.5 and later." % name)
        pairs = (entry.partition("=") for entry in listed.split())
        self.__dict__["_names"] = {new: old or new for new, _, old in pairs}
        self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value: Any = sys.modules["millrace"]
        try:
            for part in self._names[name].split("."):
                value = getattr(value, part)
        except (KeyError, AttributeError):
            raise AttributeError("tf.%s.%s is not provided by Millrace" % (self.__name__[len("millrace."):], name)) from None
        self.__dict__[name] = value
        return value

    def __dir__(self) -> Any:
        return sorted(self._names)


def find(name: str) -> Any:
    """The namespace of a name, or None. A module file of that name is found first."""
    full = "millrace." + name
    if full not in sys.modules:
        try:
            return importlib.import_module(full)
        except ModuleNotFoundError as error:
            if error.name != full or name not in _TABLE:
                return None
        sys.modules[full] = _Namespace(name, _TABLE[name])
    return sys.modules[full]
