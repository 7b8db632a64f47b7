# SPDX-License-Identifier: Apache-2.0
"""Modules that other packages dropped, for programs that import them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import millrace as tf
from millrace.compat import scipy_images


def test_modules_that_are_gone_and_names_that_are_added(tmp_path):
    for path, text in (
        ("sklearn/model_selection.py", "def train_test_split(*arrays):\n    return 'split'\n"),
        ("sklearn/__init__.py", ""),
        ("sklearn/externals/__init__.py", ""),
        ("joblib.py", "dump = 4\n"),
        ("scipy/__init__.py", ""),
        ("scipy/stats.py", "weibull_min = weibull_max = 3\n"),
        ("scipy/special.py", "comb = factorial = factorial2 = factorialk = logsumexp = len\n"),
        ("scipy/sparse/__init__.py", ""),
        ("scipy/sparse/linalg/__init__.py", "eigs = eigsh = lobpcg = svds = 5\nArpackError = ArpackNoConvergence = OSError\n"),
        ("scipy/sparse/linalg/eigen.py", "eigsh = 5\n"),
        ("PIL/__init__.py", ""),
        ("PIL/Image.py", "class Resampling:\n    NEAREST, LANCZOS, BILINEAR, BICUBIC = 0, 1, 2, 3\nBICUBIC = 3\n"),
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    program = """from sklearn import cross_validation
from sklearn.cross_validation import train_test_split
import scipy.misc
import scipy.stats
from scipy.misc import imread, logsumexp
from sklearn.externals import joblib
from scipy.sparse.linalg.eigen.arpack import eigsh
from PIL import Image
print(joblib.dump, eigsh)
print(cross_validation.train_test_split is train_test_split, train_test_split(), scipy.misc.imread is imread, logsumexp is len, Image.ANTIALIAS, scipy.stats.frechet_r)
try:
    import sklearn.grid
except ImportError as error:
    print(error)
"""
    (tmp_path / "program.py").write_text(program)
    path = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
    run = [sys.executable, "-m", "millrace.compat"]
    env = {**os.environ, "PYTHONPATH": path}
    made = subprocess.run(run + ["program.py"], cwd=tmp_path, env=env, text=True, check=False, capture_output=True)
    assert (made.returncode, made.stdout) == (0, "4 5\nTrue split True True 1 3\nNo module named 'sklearn.grid'\n"), made.stderr
    as_is = subprocess.run(run + ["--numpy-as-is", "program.py"], cwd=tmp_path, env=env, text=True, check=False, capture_output=True)
    assert as_is.returncode != 0 and "cross_validation" in as_is.stderr


def test_numbers_scaled_to_bytes():
    assert scipy_images.bytescale(np.array([-1.0, 0, 1])).tolist() == [0, 128, 255]
    assert scipy_images.bytescale(np.array([0.0, 60, 200]), cmin=0, cmax=100).tolist() == [0, 153, 255]
    assert scipy_images.bytescale(np.array([0.0, 10]), high=200, low=100).tolist() == [100, 200]
    assert scipy_images.bytescale(np.array([3, 7], np.uint8)).tolist() == [3, 7]
    with pytest.raises(ValueError, match="cmax"):
        scipy_images.bytescale(np.ones(2), cmin=2, cmax=1)


def test_images_of_arrays(tmp_path):
    pytest.importorskip("PIL")
    colors = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    path = str(tmp_path / "image.png")
    scipy_images.imsave(path, colors)
    np.testing.assert_array_equal(scipy_images.imread(path), colors)
    grey = scipy_images.imread(path, flatten=True)
    assert grey.dtype == np.float32 and grey.shape == (4, 4)
    for size, shape in ((50, (2, 2, 3)), (0.5, (2, 2, 3)), ((2, 6), (2, 6, 3))):
        assert scipy_images.imresize(colors, size).shape == shape
    np.testing.assert_array_equal(scipy_images.imrotate(colors, 90), np.rot90(colors))
    assert scipy_images.toimage(np.moveaxis(colors, -1, 0)).size == (4, 4)
    assert scipy_images.toimage(np.array([[0.5, 1.5]]), mode="F").getpixel((1, 0)) == 1.5
    with pytest.raises(ValueError, match="channel"):
        scipy_images.toimage(np.zeros((2, 2, 2)))
