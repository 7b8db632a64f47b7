# SPDX-License-Identifier: Apache-2.0
"""tf.data."""
from millrace.framework import missing as _missing

_missing.fill(globals(), "data.", {n: "NumPy arrays and feed_dict" for n in (
    "Dataset", "FixedLengthRecordDataset", "Iterator", "TFRecordDataset", "TextLineDataset")})
