# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.nets: sizes, names and end points as published, and that what they compute is right where another way tells."""

import numpy as np
import pytest

import millrace as tf
from millrace.contrib import slim_nets as nets

slim = tf.contrib.slim


def parameters(variables):
    return sum(v.get_shape().num_elements() for v in variables)


@pytest.mark.parametrize(
    "net, arguments, size, count, names",
    [
        # numbers of parameters as the papers or their models' pages have them
        (nets.vgg.vgg_a, nets.vgg.vgg_arg_scope, 224, 132863336, {"vgg_a/conv1/conv1_1/weights", "vgg_a/fc8/biases"}),
        (nets.vgg.vgg_16, nets.vgg.vgg_arg_scope, 224, 138357544, {"vgg_16/conv3/conv3_3/biases", "vgg_16/fc6/weights"}),
        (nets.vgg.vgg_19, nets.vgg.vgg_arg_scope, 224, 143667240, {"vgg_19/conv5/conv5_4/weights", "vgg_19/fc7/biases"}),
        (nets.alexnet.alexnet_v2, nets.alexnet.alexnet_v2_arg_scope, 224, 50303912, {"alexnet_v2/conv1/weights", "alexnet_v2/fc8/weights"}),
        (nets.overfeat.overfeat, nets.overfeat.overfeat_arg_scope, 231, 145704424, {"overfeat/conv5/weights", "overfeat/fc6/biases"}),
        (
            nets.resnet_v1.resnet_v1_50,
            nets.resnet_v1.resnet_arg_scope,
            224,
            25557032,
            {
                "resnet_v1_50/conv1/weights",
                "resnet_v1_50/block1/unit_1/bottleneck_v1/shortcut/BatchNorm/gamma",
                "resnet_v1_50/block4/unit_3/bottleneck_v1/conv3/weights",
                "resnet_v1_50/logits/biases",
            },
        ),
        (nets.resnet_v1.resnet_v1_101, nets.resnet_v1.resnet_arg_scope, 224, 44549160, {"resnet_v1_101/block3/unit_23/bottleneck_v1/conv2/weights"}),
        (nets.resnet_v1.resnet_v1_152, nets.resnet_v1.resnet_arg_scope, 224, 60192808, {"resnet_v1_152/block2/unit_8/bottleneck_v1/conv1/weights"}),
        (
            nets.resnet_v2.resnet_v2_50,
            nets.resnet_v2.resnet_arg_scope,
            224,
            25568360,
            {
                "resnet_v2_50/conv1/biases",
                "resnet_v2_50/block1/unit_1/bottleneck_v2/preact/gamma",
                "resnet_v2_50/postnorm/beta",
                "resnet_v2_50/block1/unit_1/bottleneck_v2/shortcut/biases",
                "resnet_v2_50/block2/unit_1/bottleneck_v2/conv3/biases",
            },
        ),
    ],
)
def test_sizes_and_names(net, arguments, size, count, names):
    assert net.default_image_size == size
    with slim.arg_scope(arguments()):
        logits, points = net(tf.placeholder(tf.float32, [2, size, size, 3]), 1000, is_training=False)
    assert parameters(tf.trainable_variables()) == count
    assert names <= {v.op.name for v in tf.global_variables()}
    assert logits.get_shape().as_list() in ([2, 1000], [2, 1, 1, 1000])
    assert all(len(t.get_shape()) in (2, 4) for t in points.values())
    assert len(slim.losses.get_regularization_losses()) == len([v for v in tf.trainable_variables() if v.op.name.endswith("weights")])


@pytest.mark.parametrize(
    "base, size, channels, count, names",
    [
        (
            nets.inception.inception_v1_base,
            7,
            1024,
            5607184,
            {"InceptionV1/Mixed_5b/Branch_2/Conv2d_0a_3x3/weights", "InceptionV1/Mixed_4d/Branch_3/Conv2d_0b_1x1/BatchNorm/moving_mean"},
        ),
        (
            nets.inception.inception_v2_base,
            7,
            1024,
            10173112,
            {"InceptionV2/Conv2d_1a_7x7/depthwise_weights", "InceptionV2/Mixed_4a/Branch_1/Conv2d_1a_3x3/weights"},
        ),
        (
            nets.inception.inception_v3_base,
            5,
            2048,
            21802784,
            {"InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights", "InceptionV3/Mixed_7c/Branch_1/Conv2d_0c_3x1/BatchNorm/beta"},
        ),
    ],
)
def test_inception(base, size, channels, count, names):
    with slim.arg_scope(nets.inception.inception_v3_arg_scope()):
        net, points = base(tf.placeholder(tf.float32, [3, 224, 224, 3]))
    assert net.get_shape().as_list() == [3, size, size, channels]
    assert parameters(slim.get_model_variables()) == count
    assert names <= {v.op.name for v in tf.global_variables()}
    assert len(tf.get_collection("moving_vars")) == len([v for v in tf.global_variables() if "moving" in v.name])
    for last in list(points)[::5]:
        tf.reset_default_graph()
        net, some = base(tf.placeholder(tf.float32, [3, 224, 224, 3]), final_endpoint=last)
        assert list(some) == list(points)[: len(some)] and some[last] is net
    with pytest.raises(ValueError, match="Unknown final endpoint Mixed_9z"):
        base(tf.placeholder(tf.float32, [3, 224, 224, 3]), final_endpoint="Mixed_9z", scope="again")


def test_inception_with_classifiers():
    net = nets.inception.inception_v3
    images = tf.placeholder(tf.float32, [None, 299, 299, 3])
    with slim.arg_scope(nets.inception.inception_v3_arg_scope()):
        logits, points = net(images, 7, is_training=False, depth_multiplier=0.1)
    assert logits.get_shape().as_list() == [None, 7] and points["AuxLogits"].get_shape().as_list() == [None, 7]
    assert points["PreLogits"].get_shape().as_list() == [None, 1, 1, sum(max(16, int(w * 0.1)) for w in (320, 384, 384, 384, 384, 192))]
    assert {"InceptionV3/Logits/Conv2d_1c_1x1/biases", "InceptionV3/AuxLogits/Conv2d_2a_5x5/weights"} <= {v.op.name for v in tf.global_variables()}
    assert logits.op.name == "InceptionV3/Logits/SpatialSqueeze" and points["Predictions"].op.name.startswith("InceptionV3/Predictions/")
    assert points["Mixed_5b"].op.name.startswith("InceptionV3/InceptionV3/Mixed_5b/")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        made = session.run(points["Predictions"], {images: np.random.RandomState(0).rand(1, 299, 299, 3)})
    assert made.shape == (1, 7) and abs(made.sum() - 1) < 1e-5
    with pytest.raises(ValueError, match="depth_multiplier is not greater than zero"):
        nets.inception.inception_v3_base(images, depth_multiplier=0, scope="none")


@pytest.mark.parametrize("kind", [nets.resnet_v1, nets.resnet_v2])
def test_holes_in_place_of_strides(kind):
    """The same weights over every pixel give, at every fourth, what they give with strides."""
    tf.set_random_seed(1)
    name = kind.__name__.rsplit(".", 1)[-1]
    blocks = [getattr(kind, name + "_block")("block%d" % i, base_depth=4 * i, num_units=2, stride=2) for i in (1, 2)]
    images = tf.placeholder(tf.float32, [1, 65, 65, 3])
    build = getattr(kind, name)
    with slim.arg_scope(kind.resnet_arg_scope()):
        strided, points = build(images, blocks, is_training=False, global_pool=False, scope="net")
        dense, _ = build(images, blocks, is_training=False, global_pool=False, output_stride=4, reuse=True, scope="net")
        with pytest.raises(ValueError, match="multiple of 4"):
            build(images, blocks, output_stride=6, reuse=True, scope="net")
        with pytest.raises(ValueError, match="cannot be reached"):
            build(images, blocks, output_stride=64, reuse=True, scope="net")
    assert {"net/block1", "net/block2/unit_1/bottleneck_" + name[-2:], "net/conv1"} <= set(points)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([strided, dense], {images: np.random.RandomState(1).rand(1, 65, 65, 3)})
    assert a.shape == (1, 5, 5, 32) and b.shape == (1, 17, 17, 32) and np.abs(a).max() > 0
    np.testing.assert_allclose(b[:, ::4, ::4], a, rtol=1e-4, atol=1e-5)


def test_a_small_one_learns():
    blocks = [nets.resnet_v1.resnet_v1_block("block1", base_depth=2, num_units=2, stride=2)]
    random = np.random.RandomState(2)
    labels = np.arange(16) % 2
    data = random.rand(16, 16, 16, 1).astype(np.float32) * 0.2
    data[labels == 1, 4:12] += 1
    with slim.arg_scope(nets.resnet_v1.resnet_arg_scope(True)):  # the dialect of 1.0
        net, points = nets.resnet_v1.resnet_v1(tf.constant(data), blocks, 2, spatial_squeeze=True, scope="net")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, net)
    train = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.02))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run(train) for _ in range(30)]
        assert losses[-1] < losses[0] / 10
        assert session.run(points["predictions"]).argmax(1).tolist() == labels.tolist()


def test_paths():
    from millrace import names

    for path in ("slim.nets", "slim.python.slim.nets"):
        for name in ("vgg", "inception", "resnet_v1", "resnet_utils", "alexnet", "overfeat"):
            assert names.module("contrib.%s.%s" % (path, name)) is getattr(nets, name)
    assert tf.contrib.slim.nets.vgg is nets.vgg and tf.contrib.slim.nets.inception.inception_v3 is nets.inception.inception_v3
