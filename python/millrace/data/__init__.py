# SPDX-License-Identifier: Apache-2.0
"""tf.data: pipelines of elements, and iterators over them."""
from millrace.data.dataset import Dataset
from millrace.data.iterators import Iterator
from millrace.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

__all__ = ["Dataset", "Iterator", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]
