# SPDX-License-Identifier: Apache-2.0
"""Examples in files and in messages: what programs do with them, and what they are told when it does not work."""

import random

import numpy as np
import pytest

import millrace as tf

FEATURES = {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64), "tags": tf.VarLenFeature(tf.string)}


def example(image=b"\x01\x02\x03", label=3, tags=(b"a", b"b")):
    kinds = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
        "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=tags)),
    }
    return tf.train.Example(features=tf.train.Features(feature=kinds)).SerializeToString()


def test_from_a_file_of_records(tmp_path):
    path = str(tmp_path / "data.tfrecords")
    with tf.python_io.TFRecordWriter(path) as writer:
        for label in range(5):
            writer.write(example(label=label, tags=[b"t"] * label))
    with tf.Graph().as_default(), tf.Session() as session:
        serialized = tf.placeholder(tf.string, [None])
        parsed = tf.parse_example(serialized, FEATURES)
        assert parsed["label"].get_shape().as_list() == [None] and parsed["tags"].get_shape().as_list() == [None, None]
        images = tf.map_fn(lambda s: tf.decode_raw(s, tf.uint8), parsed["image"], dtype=tf.uint8)
        got, tags, pixels = session.run([parsed["label"], parsed["tags"], images], {serialized: list(tf.python_io.tf_record_iterator(path))})
    assert got.tolist() == [0, 1, 2, 3, 4] and tags.dense_shape.tolist() == [5, 4] and len(tags.values) == 10
    assert pixels.tolist() == [[1, 2, 3]] * 5


@pytest.mark.parametrize(
    "features, message",
    [
        ({"x": tf.FixedLenFeature([None], tf.float32)}, "First dimension of shape for feature x unknown"),
        ({"x": tf.FixedLenFeature([2, None], tf.float32)}, "All dimensions of shape for feature x need to be known"),
        ({"x": tf.FixedLenFeature(None, tf.float32)}, "Missing shape for feature x"),
        ({"x": tf.FixedLenSequenceFeature([], tf.float32)}, "requires allow_missing to be True"),
        ({"x": tf.VarLenFeature(tf.int32)}, "is int32, want float32, int64 or string"),
        ({"x": tf.float32}, "want one of VarLenFeature"),
        ({"w": tf.SparseFeature("i", "v", tf.float32, 5), "v": tf.VarLenFeature(tf.int64)}, "Conflicting type"),
        ({}, "features"),
    ],
)
def test_features_that_cannot_be(features, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        tf.parse_example([b""], features)


@pytest.mark.parametrize(
    "serialized, message",
    [
        (b"", "Feature: image .data type: string. is required but could not be found"),
        (b"\xff\xfe", "Could not parse example input .Name: second"),
        (example(image=b"")[:-1], "Could not parse example input"),
        (
            tf.train.Example(features=tf.train.Features(feature={"image": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))})).SerializeToString(),
            "Key: image, Index: 1.  Data types don't match. Expected type: string  Feature is: float_list",
        ),
    ],
)
def test_examples_that_do_not_fit(serialized, message):
    with tf.Graph().as_default(), tf.Session() as session:
        parsed = tf.parse_example([example(), serialized], FEATURES, example_names=["first", "second"])
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(parsed)


def test_bytes_of_any_kind_end_in_an_answer():
    """Nothing but a value or InvalidArgumentError, whatever the bytes."""
    rng = random.Random(5)
    whole = example(tags=[b"long tag " * 20])
    with tf.Graph().as_default(), tf.Session() as session:
        text = tf.placeholder(tf.string, [])
        ops = [
            tf.parse_example([text], FEATURES)["tags"],
            tf.parse_single_example(text, {"label": tf.VarLenFeature(tf.int64)})["label"],
            tf.parse_single_sequence_example(text, {"label": tf.VarLenFeature(tf.int64)}, {"tags": tf.VarLenFeature(tf.string)})[1]["tags"],
            tf.parse_tensor(text, tf.float32),
            tf.decode_csv(text, [[0], [""]]),
            tf.decode_json_example(text),
        ]
        for _ in range(300):
            data = bytearray(whole if rng.random() < 0.7 else b'{"features": {"feature": {"a": {"int64List": {"value": [1, "2"]}}}}}')
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            data = bytes(data[: rng.randrange(len(data) + 1)])
            for op in ops:
                try:
                    session.run(op, {text: data})
                except tf.errors.InvalidArgumentError:
                    pass


def test_strings_that_expand_without_end():
    bomb = __import__("zlib").compress(bytes(1 << 20)) * 2
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.decode_compressed(bomb, "ZLIB")) == bytes(1 << 20)
        with pytest.raises(tf.errors.DataLossError):
            session.run(tf.decode_compressed(b"not compressed", "GZIP"))


def test_filenames_and_epochs(tmp_path):
    for name in ("b-1.txt", "b-0.txt", "a.csv"):
        (tmp_path / name).write_text("")
    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.train.match_filenames_once(str(tmp_path / "b-*.txt"))
        both = tf.matching_files([str(tmp_path / "?.csv"), str(tmp_path / "b-[0]*")])
        twice = tf.train.limit_epochs(tf.constant([1, 2]), num_epochs=2)
        same = tf.constant(1)
        assert tf.train.limit_epochs(same) is same
        with pytest.raises(ValueError, match="num_epochs must be > 0"):
            tf.train.limit_epochs(same, 0)
        session.run(tf.local_variables_initializer())
        assert [name[-7:] for name in session.run(names).astype(str)] == ["b-0.txt", "b-1.txt"]
        assert [name[-5:] for name in session.run(both).astype(str)] == ["a.csv", "0.txt"]
        for _ in range(2):
            assert session.run(twice).tolist() == [1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(twice)


def test_training_on_parsed_examples():
    """The whole way from messages to weights."""
    rng = np.random.RandomState(0)
    x = rng.randn(64, 3).astype(np.float32)
    y = x @ np.array([1.0, -2.0, 0.5], np.float32)
    rows = [
        tf.train.Example(
            features=tf.train.Features(
                feature={"x": tf.train.Feature(float_list=tf.train.FloatList(value=a)), "y": tf.train.Feature(float_list=tf.train.FloatList(value=[b]))}
            )
        ).SerializeToString()
        for a, b in zip(x, y)
    ]
    with tf.Graph().as_default(), tf.Session() as session:
        parsed = tf.parse_example(rows, {"x": tf.FixedLenFeature([3], tf.float32), "y": tf.FixedLenFeature([], tf.float32)})
        w = tf.Variable(tf.zeros([3, 1]))
        loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(parsed["x"], w), 1) - parsed["y"]))
        step = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
        session.run(tf.global_variables_initializer())
        for _ in range(100):
            session.run(step)
        assert np.allclose(session.run(w)[:, 0], [1, -2, 0.5], atol=1e-3)


def test_lists_of_keys_as_in_old_programs():
    example = tf.train.Example(
        features=tf.train.Features(
            feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])), "b": tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5]))}
        )
    ).SerializeToString()
    found = tf.parse_single_example(
        example, dense_keys=["a", "c"], dense_types=[tf.int64, tf.float32], dense_defaults={"c": 7.0}, sparse_keys=["b"], sparse_types=[tf.float32]
    )
    many = tf.parse_example([example], sparse_keys=["a"], sparse_types=[tf.int64], dense_keys=["b"], dense_types=[tf.float32], dense_shapes=[[2]])
    with tf.Session() as session:
        one, some = session.run([found, many])
    assert (one["a"], one["c"], one["b"].values.tolist()) == (3, 7, [1.5, 2.5])
    assert some["a"].values.tolist() == [3] and some["b"].tolist() == [[1.5, 2.5]]
    with pytest.raises(TypeError, match="unexpected keyword argument 'keys'"):
        tf.parse_single_example(example, keys=["a"])
    with pytest.raises(ValueError, match="for each key"):
        tf.parse_single_example(example, dense_keys=["a"])


@pytest.mark.parametrize(
    "feature, spec, message",
    [
        (
            tf.train.Feature(float_list=tf.train.FloatList(value=[1.0])),
            tf.FixedLenFeature([3], tf.float32),
            "Name: row, Key: a, Index: 0.  Number of float values != expected.  Values size: 1 but output shape: .3.",
        ),
        (
            tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"x"])),
            tf.FixedLenSequenceFeature([2], tf.string, allow_missing=True),
            "Name: row, Key: a, Index: 0.  Number of bytes values is not a multiple of stride length.",
        ),
    ],
)
def test_cells_of_a_wrong_size_say_so(feature, spec, message):
    serialized = tf.train.Example(features=tf.train.Features(feature={"a": feature})).SerializeToString()
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(tf.parse_example([serialized], {"a": spec}, example_names=["row"]))


@pytest.mark.parametrize("size", [5, 70000])
def test_records_with_a_flipped_bit_are_refused(tmp_path, size):
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"a" * size)
    assert list(tf.python_io.tf_record_iterator(path)) == [b"a" * size]
    whole = bytearray(open(path, "rb").read())
    for at in (3, 12 + size // 2, len(whole) - 1):
        damaged = bytearray(whole)
        damaged[at] ^= 4
        with open(path, "wb") as file:
            file.write(damaged)
        with pytest.raises(tf.errors.DataLossError):
            list(tf.python_io.tf_record_iterator(path))
