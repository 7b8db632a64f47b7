# SPDX-License-Identifier: Apache-2.0
"""Data sets of tf.contrib.slim: from records to batches of items."""

import numpy as np
import pytest

import millrace as tf

slim = tf.contrib.slim


def feature(value):
    if isinstance(value[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if isinstance(value[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def example(**features):
    made = tf.train.Example(features=tf.train.Features(feature={k.replace("__", "/"): feature(v) for k, v in features.items()}))
    return made.SerializeToString()


@pytest.fixture
def images(tmp_path):
    """{label: image}, in two files of records."""
    found = {i: np.random.RandomState(i).randint(0, 256, [4, 5, 3]).astype(np.uint8) for i in range(6)}
    with tf.Graph().as_default(), tf.Session() as sess:
        pixels = tf.placeholder(tf.uint8, [None, None, 3])
        png = tf.image.encode_png(pixels)
        for part in range(2):
            with tf.python_io.TFRecordWriter(str(tmp_path / ("part%d.tfrecord" % part))) as writer:
                for i in range(part * 3, part * 3 + 3):
                    raw = i == 5
                    writer.write(
                        example(
                            image__encoded=[found[i].tobytes() if raw else sess.run(png, {pixels: found[i]})],
                            image__format=[b"raw" if raw else b"png"],
                            label=[i],
                        )
                    )
    return found


def dataset(pattern, shape=None):
    decoder = slim.tfexample_decoder.TFExampleDecoder(
        {
            "image/encoded": tf.FixedLenFeature([], tf.string),
            "image/format": tf.FixedLenFeature([], tf.string, "png"),
            "label": tf.FixedLenFeature([], tf.int64),
        },
        {"image": slim.tfexample_decoder.Image(shape=shape), "label": slim.tfexample_decoder.Tensor("label")},
    )
    return slim.dataset.Dataset(pattern, tf.TFRecordReader, decoder, 6, {"image": "pixels", "label": "a number"}, num_classes=6)


@pytest.mark.parametrize("shuffle", [False, True])
def test_from_records_to_batches(images, tmp_path, shuffle):
    data = dataset(str(tmp_path / "part*.tfrecord"), shape=[4, 5, 3])
    assert data.num_classes == 6
    provider = slim.dataset_data_provider.DatasetDataProvider(data, num_readers=2, shuffle=shuffle, common_queue_capacity=20, common_queue_min=2, num_epochs=1)
    assert provider.list_items() == ["image", "label", "record_key"] and provider.num_samples() == 6
    image, label, key = provider.get(["image", "label", "record_key"])
    key.set_shape([])  # a common queue says nothing of shapes
    batch = tf.train.batch([image, label, key], 2)
    seen = {}
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    for pixels, number, where in zip(*session.run(batch)):
                        seen[int(number)] = pixels
                        assert b"part%d.tfrecord:" % (number // 3) in where
    assert sorted(seen) == list(range(6))
    assert all((seen[i] == images[i]).all() for i in range(6))
    with pytest.raises(ValueError, match="is invalid"):
        provider.get(["nothing"])


def test_one_pass_in_order(images, tmp_path):
    files = slim.parallel_reader.get_data_files([str(tmp_path / "part1.tfrecord"), str(tmp_path / "*0.tfrecord")])
    assert [f[-14:] for f in files] == ["part1.tfrecord", "part0.tfrecord"]
    _, record = slim.parallel_reader.single_pass_read(files, tf.TFRecordReader)
    (label,) = dataset("").decoder.decode(record, ["label"])
    seen = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    seen.append(int(session.run(label)))
    assert seen == [3, 4, 5, 0, 1, 2]
    with pytest.raises(ValueError, match="No data files"):
        slim.parallel_reader.get_data_files(str(tmp_path / "*.nothing"))


def decoded(serialized, features, handler):
    (item,) = slim.tfexample_decoder.TFExampleDecoder(features, {"item": handler}).decode(tf.constant(serialized))
    with tf.Session() as session:
        return session.run(item)


def test_items_of_features():
    handlers = slim.tfexample_decoder
    many = tf.VarLenFeature(tf.int64)
    record = example(values=[1, 2, 3, 4], shape=[2, 2], other=[7])
    features = {"values": many, "shape": tf.FixedLenFeature([2], tf.int64), "other": many, "none": many}
    assert decoded(record, features, handlers.Tensor("values")).tolist() == [1, 2, 3, 4]
    assert decoded(record, features, handlers.Tensor("values", shape_keys="shape")).tolist() == [[1, 2], [3, 4]]
    assert decoded(record, features, handlers.Tensor("values", shape=[4, 1])).tolist() == [[1], [2], [3], [4]]
    sparse = decoded(record, {k: many for k in ("values", "shape")}, handlers.SparseTensor("values", "values", shape=[5]))
    assert sparse.indices.tolist() == [[1], [2], [3], [4]]
    dense = decoded(record, {"values": many}, handlers.SparseTensor("values", "values", shape=[5], densify=True))
    assert dense.tolist() == [0, 1, 2, 3, 4]
    backup = handlers.BackupHandler(handlers.Tensor("none"), handlers.Tensor("other"))
    assert decoded(record, features, backup).tolist() == [7]
    callback = handlers.ItemHandlerCallback(["values", "other"], lambda t: t["values"].values[0] + t["other"].values[0])
    assert decoded(record, features, callback) == 8
    sides = {"box/" + k: tf.VarLenFeature(tf.float32) for k in ("ymin", "xmin", "ymax", "xmax")}
    boxes = decoded(example(box__ymin=[0.0, 1.0], box__xmin=[2.0, 3.0], box__ymax=[4.0, 5.0], box__xmax=[6.0, 7.0]), sides, handlers.BoundingBox(prefix="box/"))
    assert boxes.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
    with pytest.raises(ValueError, match="both shape_keys and shape"):
        handlers.Tensor("a", shape_keys="b", shape=[1])
    with pytest.raises(ValueError, match="4 keys"):
        handlers.BoundingBox(["a"])


def test_paths_of_modules():
    from millrace.compat import imports

    imports.install()
    from tensorflow.contrib.slim.python.slim.data import dataset_data_provider, tfexample_decoder
    from tensorflow.contrib.slim.python.slim.data.dataset import Dataset

    assert dataset_data_provider.DatasetDataProvider is slim.dataset_data_provider.DatasetDataProvider
    assert tfexample_decoder.TFExampleDecoder is slim.tfexample_decoder.TFExampleDecoder and Dataset is slim.dataset.Dataset


def test_an_evaluation_reads_from_queues(tmp_path):
    number = tf.train.range_input_producer(4, shuffle=False).dequeue()
    batch = tf.train.batch([tf.cast(number, tf.float32)], 4)
    factor = tf.Variable(1.0)
    mean, update = tf.metrics.mean(batch * factor)
    step = tf.train.create_global_step()
    with tf.Session() as session:
        session.run([factor.assign(2.0), step.initializer])
        path = tf.train.Saver([factor, step]).save(session, str(tmp_path / "model"))
    values = {"mean": mean}.values()
    found = slim.evaluation.evaluate_once("", path, str(tmp_path), num_evals=2, eval_op=update, final_op=values, variables_to_restore=[factor, step])
    assert found == [3.0]


def test_sparse_features_have_the_shape_of_their_indices_unless_it_is_given():
    features = {"indices": tf.VarLenFeature(tf.int64), "values": tf.VarLenFeature(tf.float32)}
    one = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2, 0]))
    other = tf.train.Feature(float_list=tf.train.FloatList(value=[0.1, 0.2, 0.6]))
    example = tf.train.Example(features=tf.train.Features(feature={"indices": one, "values": other})).SerializeToString()
    (made,) = slim.tfexample_decoder.TFExampleDecoder(features, {"labels": slim.tfexample_decoder.SparseTensor()}).decode(tf.constant(example), ["labels"])
    batch = tf.parse_example([example, example], features)
    of_batch = slim.tfexample_decoder.SparseTensor().tensors_to_item(batch)
    with tf.Session() as session:
        value, values = session.run([made, of_batch])
    assert value.indices.tolist() == [[1], [2], [0]] and value.dense_shape.tolist() == [3]
    assert values.indices.tolist() == [[0, 1], [0, 2], [0, 0], [1, 1], [1, 2], [1, 0]] and values.dense_shape.tolist() == [2, 3]
