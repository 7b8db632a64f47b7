# SPDX-License-Identifier: Apache-2.0
"""tf.keras.applications: models for ImageNet. Numbers of parameters and names of layers are those of TensorFlow 1.15."""

import json

import numpy as np
import pytest

import millrace as tf

A = tf.keras.applications


@pytest.fixture(autouse=True)
def fresh():
    tf.keras.backend.clear_session()
    yield
    tf.keras.backend.set_image_data_format("channels_last")


@pytest.mark.parametrize(
    "name, layers, parameters, width, some",
    [
        ("VGG16", 23, 138357544, 512, ["block3_conv3", "block5_pool", "fc2", "predictions"]),
        ("ResNet50", 177, 25636712, 2048, ["conv2_block1_0_conv", "conv4_block6_out", "probs"]),
        ("ResNet50V2", 192, 25613800, 2048, ["conv2_block3_preact_bn", "post_relu", "max_pooling2d_2"]),
        ("InceptionV3", 313, 23851784, 2048, ["conv2d_93", "mixed9_1", "mixed10"]),
        ("Xception", 134, 22910480, 2048, ["block2_sepconv2_act", "block14_sepconv2_bn", "add_11"]),
        ("MobileNet", 93, 4253864, 1024, ["conv_pad_12", "conv_pw_13_relu", "reshape_2"]),
        ("MobileNetV2", 157, 3538984, 1280, ["block_16_project_BN", "out_relu", "Logits"]),
        ("DenseNet121", 429, 8062504, 1024, ["conv1/relu", "conv5_block16_concat", "pool4_pool"]),
        ("NASNetMobile", 771, 5326716, 1056, ["normal_concat_12", "adjust_bn_reduce_8", "separable_conv_1_pad_reduction_left1_stem_1"]),
    ],
)
def test_shapes_and_names(name, layers, parameters, width, some):
    model = getattr(A, name)(weights=None)
    assert (len(model.layers), model.count_params(), model.output_shape) == (layers, parameters, (None, 1000))
    assert {layer.name for layer in model.layers} >= set(some)
    assert getattr(A, name)(weights=None, include_top=False, pooling="avg").output_shape == (None, width)


def test_inception_resnet():
    model = A.InceptionResNetV2(weights=None, include_top=False, input_shape=(75, 75, 3))
    assert (model.count_params(), model.output_shape) == (54336736, (None, 1, 1, 1536))
    assert model.get_layer("block8_10").arguments == {"scale": 1.0}


def test_weights_of_files(tmp_path):
    pytest.importorskip("h5py")
    arguments = dict(alpha=0.25, input_shape=(32, 32, 1), classes=5)
    model = A.MobileNet(weights=None, **arguments)
    images = np.random.RandomState(1).rand(2, 32, 32, 1)
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(images, np.array([1, 4]), verbose=0)
    model.save_weights(str(tmp_path / "w.h5"))
    again = A.mobilenet.MobileNet(weights=str(tmp_path / "w.h5"), **arguments)
    np.testing.assert_allclose(again.predict(images), model.predict(images), rtol=1e-5)
    np.testing.assert_allclose(again.predict(images).sum(1), 1, rtol=1e-5)


def test_input_tensors():
    tensor = tf.keras.Input((32, 32, 3))
    model = A.VGG16(include_top=False, weights=None, input_tensor=tf.keras.layers.Lambda(lambda x: x * 2.0)(tensor), pooling="max")
    assert model.input is tensor and model.output_shape == (None, 512)


def test_channels_first():
    tf.keras.backend.set_image_data_format("channels_first")
    assert A.MobileNetV2(weights=None, include_top=False, input_shape=(3, 96, 96)).output_shape == (None, 1280, 3, 3)
    assert A.NASNetMobile(weights=None, include_top=False).output_shape == (None, 7, 7, 1056)  # its channels are always last
    assert tf.keras.backend.image_data_format() == "channels_first"


def test_images_as_models_want_them():
    images = np.random.RandomState(0).uniform(0, 255, (2, 4, 5, 3))
    shifted = images[..., ::-1] - [103.939, 116.779, 123.68]
    np.testing.assert_allclose(A.vgg16.preprocess_input(images.copy()), shifted)
    first = A.imagenet_utils.preprocess_input(images[0].transpose(2, 0, 1).copy(), "channels_first")
    np.testing.assert_allclose(first, shifted[0].transpose(2, 0, 1))
    np.testing.assert_allclose(A.mobilenet.preprocess_input(images.copy()), images / 127.5 - 1)
    torch = (images / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(A.densenet.preprocess_input(images.copy()), torch)
    assert A.xception.preprocess_input(np.array([[[255, 0, 0]]], np.uint8)).tolist() == [[[1.0, -1.0, -1.0]]]
    with tf.Session() as sess:
        np.testing.assert_allclose(sess.run(A.resnet.preprocess_input(tf.constant(images))), shifted)
        np.testing.assert_allclose(sess.run(A.densenet.preprocess_input(tf.constant(images))), torch)


def test_classes(tmp_path, monkeypatch):
    from millrace.keras.applications import imagenet_utils

    path = tmp_path / "classes.json"
    path.write_text(json.dumps({str(i): ["n%d" % i, "thing %d" % i] for i in range(1000)}))
    monkeypatch.setattr(imagenet_utils, "get_file", lambda *args, **kwargs: str(path))
    imagenet_utils._classes.cache_clear()
    row = np.zeros([1, 1000])
    row[0, [7, 3, 900]] = [0.5, 0.2, 0.3]
    assert A.vgg19.decode_predictions(row, top=3) == [[("n7", "thing 7", 0.5), ("n900", "thing 900", 0.3), ("n3", "thing 3", 0.2)]]
    imagenet_utils._classes.cache_clear()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: A.VGG19(weights="unknown"), ValueError, "path to the weights file"),
        (lambda: A.ResNet101(weights="imagenet", classes=2000), ValueError, "`classes` should be 1000"),
        (lambda: A.VGG16(weights="imagenet", input_shape=(200, 200, 3)), ValueError, "should be \\(224, 224, 3\\)"),
        (lambda: A.Xception(weights=None, include_top=False, input_shape=(70, 80, 3)), ValueError, "at least 71x71"),
        (lambda: A.VGG16(weights=None, input_shape=(None, None, 3)), ValueError, "static `input_shape`"),
        (lambda: A.MobileNet(include_top=False, alpha=0.3), ValueError, "alpha can be one of `0.25`"),
        (lambda: A.imagenet_utils.decode_predictions(np.zeros([1, 10])), ValueError, "shape \\(samples, 1000\\)"),
        (lambda: A.imagenet_utils.preprocess_input(np.zeros([2, 2, 3]), "nhwc"), ValueError, "Unknown data_format"),
        (lambda: A.DenseNet169(), FileNotFoundError, "densenet169_weights_tf_dim_ordering_tf_kernels.h5 is missing"),
    ],
)
def test_refusals(call, error, message, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(error, match=message):
        call()


def test_custom_objects_of_old_files_of_mobilenet():
    keras, mobilenet = tf.keras, tf.keras.applications.mobilenet
    objects = {"relu6": mobilenet.relu6, "DepthwiseConv2D": mobilenet.DepthwiseConv2D}
    x = keras.layers.Input((4, 4, 3))
    y = keras.layers.Activation(mobilenet.relu6)(keras.layers.DepthwiseConv2D(3)(x))
    again = keras.Model.from_config(keras.Model(x, y).get_config(), custom_objects=objects)
    assert again.layers[2].activation is mobilenet.relu6
    assert keras.backend.eval(mobilenet.relu6(tf.constant([-1.0, 3.0, 7.0]))).tolist() == [0, 3, 6]


def test_layers_that_the_program_gives():
    class Mine:
        """As models of object detection have them: keywords only, another width of the first layer."""

        def Conv2D(self, filters, **kwargs):
            return tf.keras.layers.Conv2D(filters // 2 if kwargs["name"] == "Conv1" else filters, **kwargs)

        def DepthwiseConv2D(self, **kwargs):
            return tf.keras.layers.DepthwiseConv2D(**dict(kwargs, use_bias=True))

        def Input(self, shape):
            return tf.keras.layers.Input((None, None, 3)) if shape else None

        def __getattr__(self, name):
            return getattr(tf.keras.layers, name)

    with tf.Graph().as_default():
        model = tf.keras.applications.MobileNetV2(weights=None, include_top=False, layers=Mine(), backend=None)
        assert model.get_layer("Conv1").filters == 16 and model.get_layer("expanded_conv_depthwise").use_bias
        assert tf.keras.applications.MobileNetV2(weights=None, include_top=False).get_layer("Conv1").filters == 32
