# SPDX-License-Identifier: Apache-2.0
"""tf.keras.preprocessing.image: the same pictures for the same seeds as TensorFlow 1.15 makes, parts for validation, files."""

import numpy as np
import pytest

import millrace as tf

I = tf.keras.preprocessing.image
X = np.random.RandomState(0).rand(6, 8, 8, 3) * 255
Y = np.array([0, 1, 0, 1, 0, 1])


def told(a):
    """What a batch is known by: its sum, and one that knows places."""
    a = np.asarray(a, np.float64)
    return [a.sum(), (a.ravel() * np.arange(a.size)).sum()]


PICTURES = [
    (dict(rotation_range=40), [96255.448, 37262376.227]),
    (dict(width_shift_range=0.3, height_shift_range=[-2, 1, 2]), [96031.905, 36417016.146]),
    (dict(width_shift_range=3), [96148.760, 37123071.203]),
    (dict(shear_range=20.0), [95968.203, 37104540.825]),
    (dict(zoom_range=0.4), [95795.182, 37109702.877]),
    (dict(channel_shift_range=40.0), [97533.058, 37274216.285]),
    (dict(horizontal_flip=True, vertical_flip=True), [96186.958, 37011602.443]),
    (dict(rotation_range=10, zoom_range=(0.5, 1.0), horizontal_flip=True, fill_mode="reflect"), [96367.527, 37320140.092]),
    (dict(rescale=1 / 255.0, samplewise_center=True, samplewise_std_normalization=True), [-0.000, 548.304]),
]


@pytest.mark.parametrize("settings, expected", PICTURES)
def test_pictures_of_a_seed(settings, expected):
    pytest.importorskip("scipy")
    batch = next(I.ImageDataGenerator(**settings).flow(X, Y, batch_size=4, seed=3))[0]
    np.testing.assert_allclose(told(batch), expected, 1e-5, 0.5)


def test_parts_for_training_and_validation():
    made = I.ImageDataGenerator(validation_split=0.5)
    for subset, at in (("training", 3), ("validation", 0)):
        x, y = next(made.flow(X, np.array([0, 1, 0, 1, 0, 0]), batch_size=6, shuffle=False, subset=subset))
        np.testing.assert_array_equal(x, X[at : at + 3].astype("float32"))
        assert len(y) == 3
    with pytest.raises(ValueError, match="different number of classes"):
        made.flow(X, np.array([0, 0, 0, 1, 1, 1]), subset="training")
    with pytest.raises(ValueError, match="Invalid subset name: other"):
        made.flow(X, Y, subset="other")
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        I.ImageDataGenerator(validation_split=5)


def test_arrays_that_go_along_and_weights():
    flow = I.ImageDataGenerator().flow((X, X[:, 0, 0]), Y, batch_size=2, seed=1, sample_weight=Y * 2.0)
    (x, more), y, weights = next(flow)
    np.testing.assert_allclose(x[:, 0, 0], more, 1e-6)
    np.testing.assert_array_equal(weights, y * 2)


def test_a_sequence_has_one_order_until_its_epoch_ends():
    flow = I.ImageDataGenerator().flow(X, np.arange(6), batch_size=2, seed=1)
    first = [flow[i][1].tolist() for i in range(3)]
    assert sorted(sum(first, [])) == list(range(6)) and [flow[i][1].tolist() for i in range(3)] == first != [[0, 1], [2, 3], [4, 5]]
    flow.on_epoch_end()
    assert [flow[i][1].tolist() for i in range(3)] != first


def test_how_bright_and_which_colours():
    pytest.importorskip("PIL")
    grey = np.asarray(I.array_to_img(np.arange(4.0).reshape(2, 2, 1)))
    assert grey.tolist() == [[0, 85], [170, 255]]
    half = I.apply_brightness_shift(np.stack([np.arange(4.0).reshape(2, 2)] * 3, -1), 0.5)
    assert half[..., 0].tolist() == [[0, 42], [85, 127]]
    np.testing.assert_array_equal(I.apply_channel_shift(np.arange(4.0), 2), [2, 3, 3, 3])
    with pytest.raises(ValueError, match="brightness_range"):
        I.ImageDataGenerator(brightness_range=3)


def test_folders_of_images(tmp_path):
    pytest.importorskip("PIL")
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(4):
            I.save_img(str(tmp_path / name / ("%d.png" % i)), X[i])
    made = I.ImageDataGenerator(validation_split=0.25)
    assert made.flow_from_directory(str(tmp_path), subset="training").filenames == ["a/1.png", "a/2.png", "a/3.png", "b/1.png", "b/2.png", "b/3.png"]
    kept = tmp_path / "kept"
    kept.mkdir()
    held = made.flow_from_directory(
        str(tmp_path), (5, 5), "rgba", ["a", "b"], "sparse", subset="validation", interpolation="bilinear", save_to_dir=str(kept), save_prefix="seen"
    )
    x, y = next(held)
    assert held.samples == 2 and x.shape == (2, 5, 5, 4) and y.dtype == np.float32 and (x[..., 3] == 255).all()
    assert len(list(kept.glob("seen_*.png"))) == 2
    with pytest.raises(ValueError, match="Invalid interpolation method"):
        I.load_img(str(tmp_path / "a" / "0.png"), target_size=(4, 4), interpolation="x")
    assert I.load_img(str(tmp_path / "a" / "0.png"), color_mode="grayscale").mode == "L"


@pytest.fixture
def table(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    for i in range(6):
        pillow.fromarray(np.full((4, 4, 3), i * 40, np.uint8)).save(str(tmp_path / ("%d.png" % i)))
    (tmp_path / "t.txt").write_text("no picture")
    names = ["%d.png" % i for i in range(6)] + ["t.txt", "gone.png"]
    return {
        "filename": names,
        "class": list("babbcabc"),
        "v": np.arange(8.0) * 2,
        "w": np.arange(8.0),
        "m": [["a"], ["a", "b"], ["c"], ["b"], ["a"], ["b", "c"], [], []],
    }


@pytest.mark.parametrize(
    "settings, first, targets",  # as 1.15.5 gives them for a pandas.DataFrame
    [
        ({}, "0.png", [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0]]),
        ({"class_mode": "sparse"}, "0.png", [1, 0, 1, 1]),
        ({"classes": ["b", "c"]}, "0.png", [[1, 0], [1, 0], [1, 0], [0, 1]]),
        ({"class_mode": "binary", "classes": ["a", "b"]}, "0.png", [1, 0, 1, 1]),
        ({"y_col": "m"}, "0.png", [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0]]),
        ({"y_col": "v", "class_mode": "raw"}, "0.png", [0, 2, 4, 6]),
        ({"y_col": ["v", "w"], "class_mode": "raw"}, "0.png", [[0, 0], [2, 1], [4, 2], [6, 3]]),
        ({"y_col": ["v", "w"], "class_mode": "multi_output"}, "0.png", [[0, 2, 4, 6], [0, 1, 2, 3]]),
        ({"subset": "training", "class_mode": "sparse"}, "3.png", [1, 2, 0]),
    ],
)
def test_batches_of_a_table(table, tmp_path, settings, first, targets):
    generator = I.ImageDataGenerator(validation_split=0.5)
    with pytest.warns(UserWarning, match="Found 2 invalid image filename"):
        made = generator.flow_from_dataframe(table, str(tmp_path), target_size=(2, 2), batch_size=4, shuffle=False, **settings)
    images, found = next(made)
    assert made.filenames[0] == first and images[0].max() == int(first[0]) * 40 and [np.asarray(t).tolist() for t in found] == targets
    if settings.get("class_mode") == "raw":
        weighted = generator.flow_from_dataframe(table, str(tmp_path), shuffle=False, weight_col="w", batch_size=3, validate_filenames=False, **settings)
        assert next(weighted)[2].tolist() == [0, 1, 2] and weighted.samples == 8


def test_tables_without_a_generator_and_with_arguments_of_1_13(table, tmp_path):
    settings = {"directory": str(tmp_path), "target_size": (2, 2), "shuffle": False, "class_mode": None, "validate_filenames": False}
    plain = next(I.DataFrameIterator(table, batch_size=2, **settings))
    with pytest.warns(DeprecationWarning) as told:
        made = I.ImageDataGenerator().flow_from_dataframe(table, batch_size=2, has_ext=True, sort=True, drop_duplicates=True, **settings)
    assert [str(w.message).split()[0] for w in told] == ["has_ext", "sort", "drop_duplicates"]
    np.testing.assert_array_equal(plain, next(made))


def test_tables_that_do_not_fit_are_refused(table, tmp_path):
    generator = I.ImageDataGenerator()
    for kind, text, settings in (
        (TypeError, "column values must be type string, list or tuple", {"y_col": "v"}),
        (TypeError, "y_col must be a list. Received str", {"class_mode": "multi_output"}),
        (TypeError, "All values in column x_col=v must be strings", {"x_col": "v"}),
        (TypeError, "weight_col=class must be numeric", {"weight_col": "class"}),
        (ValueError, "there must be 2 classes. Found 3 classes", {"class_mode": "binary"}),
        (ValueError, "Invalid class_mode: nope", {"class_mode": "nope"}),
    ):
        with pytest.raises(kind, match=text):
            generator.flow_from_dataframe(table, str(tmp_path), **settings)
