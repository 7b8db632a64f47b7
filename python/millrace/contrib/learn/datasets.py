# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Data sets."""

from typing import Any, Dict

from millrace.contrib.learn import base, synthetic, text_datasets
from millrace.contrib.learn.base import load_boston, load_iris
from millrace.examples.tutorials.mnist import input_data as mnist  # noqa: F401
from millrace.examples.tutorials.mnist.input_data import load_mnist, read_data_sets  # noqa: F401
from millrace.framework.errors import at_user_line

DATASETS: Dict[str, Any] = {"iris": load_iris, "boston": load_boston, "mnist": load_mnist, "dbpedia": text_datasets.load_dbpedia}
SYNTHETIC: Dict[str, Any] = {"circles": synthetic.circles, "spirals": synthetic.spirals}


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """A data set by name; `size` and `test_with_fake_data` are told to "dbpedia" alone."""
    if name not in DATASETS:
        raise at_user_line(ValueError("Name of dataset is not found: %s" % name))
    return DATASETS[name](size, test_with_fake_data) if name == "dbpedia" else DATASETS[name]()


def make_dataset(name: str, n_samples: int = 100, noise: Any = None, seed: Any = 42, *args: Any, **kwargs: Any) -> base.Dataset:
    """Points that are drawn: circles or spirals."""
    if name not in SYNTHETIC:
        raise at_user_line(ValueError("Synthetic dataset not found or not implemeted: %s" % name))
    return SYNTHETIC[name](n_samples, noise, seed, *args, **kwargs)
