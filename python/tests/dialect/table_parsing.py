# SPDX-License-Identifier: Apache-2.0
"""Example messages, comma-separated values, serialized tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from table import A, case, f32

i64 = np.int64


def _feature(tf: Any, values: Any) -> Any:
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _example(tf: Any, **features: Any) -> bytes:
    made = tf.train.Example(features=tf.train.Features(feature={k: _feature(tf, v) for k, v in features.items()}))
    return made.SerializeToString()  # type: ignore[no-any-return]


def _batch(tf: Any) -> Any:
    return [
        _example(tf, x=[1.5, 2.5], n=[7], s=[b"a", b"b"], v=[1, 2, 3], place=[4, 1], value=[0.25, 0.5]),
        _example(tf, x=[-1.0, 0.0], s=[b"c"], place=[0], value=[0.75]),
    ]


def _dense(sparse: Any, tf: Any) -> Any:
    return tf.sparse_tensor_to_dense(sparse, default_value="" if sparse.dtype == tf.string else 0)


_X, _N = np.array([[1.5, 2.5], [-1, 0]], f32), np.array([7, 42], i64)
case(
    "parse_example",
    [_X, _N],
    *[
        lambda tf, c=c: (lambda d: [d["x"], d["n"]])(
            c(tf, _batch(tf), {"x": tf.FixedLenFeature([2], tf.float32), "n": tf.FixedLenFeature([], tf.int64, default_value=42)})
        )
        for c in (
            lambda tf, x, f: tf.parse_example(x, f),
            lambda tf, x, f: tf.parse_example(serialized=tf.constant(x), features=f, name="p"),
            lambda tf, x, f: tf.parse_example(x, f, "p", ["one", "two"]),
            lambda tf, x, f: tf.parse_example(tf.stack([tf.constant(s) for s in x]), f, example_names=["one", "two"]),
            lambda tf, x, f: tf.io.parse_example(x, f),
        )
    ],
)
case("parse_example's shapes", [(2, 2), (2,), (2, None), None, (2, None, 1)], lambda tf: [_shape(t) for t in _all(tf, _batch(tf))])
case(
    "parse_example of features of any length",
    [np.array([[b"a", b"b"], [b"c", b""]], object), np.array([[1, 2, 3], [0, 0, 0]]), np.array([[1, 2, 3], [-1, -1, -1]])],
    lambda tf: _lengths(tf, -1),
    lambda tf: _lengths(tf, tf.constant(-1, tf.int64)),
)
case(
    "parse_example of sparse features",
    np.array([[0, 0.5, 0, 0, 0.25], [0.75, 0, 0, 0, 0]], f32),
    *[
        lambda tf, c=c: _dense(tf.parse_example(_batch(tf), {"w": c(tf)})["w"], tf)
        for c in (
            lambda tf: tf.SparseFeature("place", "value", tf.float32, 5),
            lambda tf: tf.SparseFeature(index_key="place", value_key="value", dtype=tf.float32, size=5, already_sorted=False),
            lambda tf: tf.SparseFeature(["place"], "value", tf.float32, [5]),
        )
    ],
)
case(
    "parse_example names what was asked for",
    ["s", "w"],
    lambda tf: sorted(tf.parse_example(_batch(tf), {"w": tf.SparseFeature("place", "value", tf.float32, 5), "s": tf.VarLenFeature(tf.string)})),
)
case(
    "parse_single_example",
    [_X[0], np.int64(7), np.array([1, 2, 3]), np.array([b"a", b"b"], object)],
    *[
        lambda tf, c=c: (lambda d: [d["x"], d["n"], d["v"].values, d["s"].values])(
            c(
                tf,
                _batch(tf)[0],
                {
                    "x": tf.FixedLenFeature([2], tf.float32),
                    "n": tf.FixedLenFeature([], tf.int64),
                    "v": tf.VarLenFeature(tf.int64),
                    "s": tf.VarLenFeature(dtype=tf.string),
                },
            )
        )
        for c in (
            lambda tf, x, f: tf.parse_single_example(x, f),
            lambda tf, x, f: tf.parse_single_example(serialized=tf.constant(x), features=f, name="p"),
            lambda tf, x, f: tf.parse_single_example(x, features=f),
            lambda tf, x, f: tf.io.parse_single_example(x, f),
        )
    ],
)
case(
    "parse_single_example of steps",
    [np.array([1, 2, 3]), np.zeros((0, 2), f32)],
    lambda tf: (lambda d: [d["v"], d["absent"]])(
        tf.parse_single_example(
            _batch(tf)[0], {"v": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True), "absent": tf.FixedLenSequenceFeature([2], tf.float32, True)}
        )
    ),
)


def _shape(tensor: Any) -> Any:
    shape = (tensor.dense_shape if hasattr(tensor, "dense_shape") else tensor).get_shape()
    return None if hasattr(tensor, "dense_shape") else tuple(shape.as_list())


def _all(tf: Any, batch: Any) -> Any:
    found = tf.parse_example(
        batch,
        {
            "x": tf.FixedLenFeature((2,), tf.float32),
            "n": tf.FixedLenFeature((), tf.int64, 0),
            "v": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
            "s": tf.VarLenFeature(tf.string),
            "value": tf.FixedLenSequenceFeature([1], tf.float32, allow_missing=True),
        },
    )
    return [found[k] for k in ("x", "n", "v", "s", "value")]


def _lengths(tf: Any, padding: Any) -> Any:
    found = tf.parse_example(_batch(tf), {"s": tf.VarLenFeature(tf.string), "v": tf.VarLenFeature(tf.int64)})
    padded = tf.parse_example(_batch(tf), {"v": tf.FixedLenSequenceFeature(shape=[], dtype=tf.int64, allow_missing=True, default_value=padding)})
    return [_dense(found["s"], tf), tf.concat([_dense(found["v"], tf), tf.zeros([0, 3], tf.int64)], 0), padded["v"]]


def _sequence(tf: Any) -> bytes:
    lists = {"i": [[1, 2], [3, 4]], "t": [[b"a"], [b"b", b"c"]]}
    made = tf.train.SequenceExample(
        context=tf.train.Features(feature={"c": _feature(tf, [5]), "w": _feature(tf, [0.5])}),
        feature_lists=tf.train.FeatureLists(feature_list={k: tf.train.FeatureList(feature=[_feature(tf, v) for v in steps]) for k, steps in lists.items()}),
    )
    return made.SerializeToString()  # type: ignore[no-any-return]


def _parsed(tf: Any, call: Any) -> Any:
    context, steps = call(
        tf,
        _sequence(tf),
        {"c": tf.FixedLenFeature([], tf.int64), "d": tf.FixedLenFeature([1], tf.float32, 2.5), "w": tf.VarLenFeature(tf.float32)},
        {
            "i": tf.FixedLenSequenceFeature([2], tf.int64),
            "t": tf.VarLenFeature(tf.string),
            "none": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        },
    )
    return [context["c"], context["d"], context["w"].values, steps["i"], _dense(steps["t"], tf), steps["none"]]


case(
    "parse_single_sequence_example",
    [np.int64(5), np.array([2.5], f32), np.array([0.5], f32), np.array([[1, 2], [3, 4]]), np.array([[b"a", b""], [b"b", b"c"]], object), np.zeros(0, f32)],
    *[
        lambda tf, c=c: _parsed(tf, c)
        for c in (
            lambda tf, x, c, s: tf.parse_single_sequence_example(x, c, s),
            lambda tf, x, c, s: tf.parse_single_sequence_example(serialized=x, context_features=c, sequence_features=s, example_name="e", name="p"),
            lambda tf, x, c, s: tf.parse_single_sequence_example(tf.constant(x), context_features=c, sequence_features=s),
            lambda tf, x, c, s: tf.io.parse_single_sequence_example(x, c, s),
        )
    ],
)

_LINES = ["1,2.5,a", ',-1e3,"b, ""c"""']
_COLUMNS = [np.array([1, 7], np.int32), np.array([2.5, -1000], f32), np.array([b"a", b'b, "c"'], object)]
case(
    "decode_csv",
    _COLUMNS,
    *[
        lambda tf, c=c: c(tf)
        for c in (
            lambda tf: tf.decode_csv(_LINES, [[7], [0.0], [""]]),
            lambda tf: tf.decode_csv(records=_LINES, record_defaults=[[7], [], ["none"]], field_delim=",", use_quote_delim=True, name="d"),
            lambda tf: tf.decode_csv(tf.constant(_LINES), [tf.constant([7]), tf.constant([], tf.float32), tf.constant([], tf.string)]),
            lambda tf: tf.io.decode_csv(_LINES, [[7], [0.0], [""]]),
        )
    ],
)
case(
    "decode_csv of chosen columns",
    [np.array([b"a", b"-"], object), np.array([3, 9], np.int32)],
    lambda tf: tf.decode_csv(["a|2|3", "NA|5|NA"], [["-"], [9]], field_delim="|", na_value="NA", select_cols=[0, 2]),
)
case(
    "serialize_tensor",
    A,
    lambda tf: tf.parse_tensor(tf.serialize_tensor(A), tf.float32),
    lambda tf: tf.parse_tensor(serialized=tf.serialize_tensor(tensor=A, name="s"), out_type=tf.float32, name="p"),
    lambda tf: tf.io.parse_tensor(tf.io.serialize_tensor(A), tf.float32),
)
case(
    "decode_compressed",
    b"a" * 50,
    lambda tf: tf.decode_compressed(__import__("zlib").compress(b"a" * 50), "ZLIB"),
    lambda tf: tf.decode_compressed(bytes=__import__("gzip").compress(b"a" * 50), compression_type="GZIP"),
    lambda tf: tf.io.decode_compressed(b"a" * 50),
)
case(
    "decode_json_example",
    np.array([3]),
    lambda tf: tf.parse_single_example(
        tf.decode_json_example('{"features": {"feature": {"n": {"int64List": {"value": ["3"]}}}}}'), {"n": tf.FixedLenFeature([1], tf.int64)}
    )["n"],
)
