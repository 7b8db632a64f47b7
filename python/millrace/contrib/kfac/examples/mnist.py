# SPDX-License-Identifier: Apache-2.0
"""Batches of MNIST."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from millrace.data import Dataset
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, math_ops

_ROWS_DRAWN = 512


def load_mnist(data_dir: Optional[str], num_epochs: int, batch_size: int, flatten_images: bool = True, use_fake_data: bool = False) -> Tuple[Any, Any]:
    """Whole batches of images, as numbers from 0 to 1 in rows [batch, 784] or in squares [batch, 28, 28, 1], and labels [batch], in an order by chance. They are
    read from a folder, or drawn: then images mean nothing."""
    if use_fake_data:
        draw = np.random.RandomState(0)
        images, labels = draw.randint(0, 255, [_ROWS_DRAWN, 28, 28, 1], np.uint8), draw.randint(0, 10, _ROWS_DRAWN)
    elif data_dir is None:
        raise at_user_line(ValueError("load_mnist wants a folder with MNIST's files, data_dir, unless use_fake_data is true."))
    else:
        from millrace.examples.tutorials.mnist import input_data

        train = input_data.read_data_sets(data_dir, dtype=dtypes.uint8, reshape=False).train
        images, labels = train.images, train.labels.astype(np.int64)
    rows = Dataset.from_tensor_slices((images, labels)).shuffle(len(labels)).repeat(num_epochs).batch(batch_size, drop_remainder=True)
    made, classes = rows.make_one_shot_iterator().get_next()
    made = math_ops.cast(made, dtypes.float32) / 255.0
    return array_ops.reshape(made, [batch_size, 784]) if flatten_images else made, classes
