# SPDX-License-Identifier: Apache-2.0
"""Data sets of files of values that commas separate."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zlib
from typing import Any, Iterator, List, Optional

import numpy as np

from millrace import gfile
from millrace.data import components
from millrace.data.dataset import Dataset, _int64
from millrace.data.readers import TextLineDataset
from millrace.data.grouping import ignore_errors as without_errors, shuffle_and_repeat
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.framework.static_values import constant_value
from millrace.framework.type_spec import TensorSpec
from millrace.ops import gen_ops, parsing_ops


_BUFFER_BYTES = 4 << 20


class CsvDataset(Dataset):
    """The records of files of values that commas separate (RFC 4180), as tuples."""

    def __init__(
        self,
        filenames: Any,
        record_defaults: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Any = None,
    ) -> None:
        defaults = [convert_to_tensor([], d) if isinstance(d, dtypes.DType) else convert_to_tensor(d) for d in record_defaults]
        specs = tuple(TensorSpec([], d.dtype) for d in defaults)
        super().__init__(
            gen_ops.csv_dataset(
                convert_to_tensor(filenames, dtypes.string),
                "" if compression_type is None else compression_type,
                _int64(_BUFFER_BYTES if buffer_size is None else buffer_size),
                header,
                field_delim,
                use_quote_delim,
                na_value,
                _int64(np.array([] if select_cols is None else select_cols, np.int64)),
                defaults,
                components.flat(specs)[1],
            ),
            specs,
        )


def _int_within(dtype: Any) -> Any:
    def fits(text: str) -> bool:
        try:
            return bool(dtype.min <= int(text) <= dtype.max)
        except ValueError:
            return False

    return fits


def _float_within(dtype: Any) -> Any:
    def fits(text: str) -> bool:
        try:
            with np.errstate(over="ignore"):
                return bool(dtype.as_numpy_dtype(text) < np.inf)
        except ValueError:
            return False

    return fits


_GUESSES = [(t, _int_within(t)) for t in (dtypes.int32, dtypes.int64)] + [(t, _float_within(t)) for t in (dtypes.float32, dtypes.float64)]
_ORDER = [t for t, _ in _GUESSES] + [dtypes.string]


def _guessed_defaults(rows: Iterator[List[str]], columns: List[int], na_value: str, float_type: Any = None) -> List[Any]:
    """For each column 0 or "" of the narrowest type of int32, int64, float32, float64 and string that all its values in these rows have. float_type:
    in place of float32 and float64."""
    found: List[Any] = [None] * len(columns)
    for row in rows:
        for i, column in enumerate(columns):
            if column >= len(row):
                raise at_user_line(ValueError("Problem inferring types: CSV row has different number of fields than expected."))
            text = row[column]
            if text in ("", na_value):
                continue
            kind = next((t for t, fits in _GUESSES if fits(text)), dtypes.string)
            if float_type is not None and kind.is_floating:
                kind = float_type
            if found[i] is None or _ORDER.index(kind) > _ORDER.index(found[i]):
                found[i] = kind
    return [constant([""] if kind in (None, dtypes.string) else [0], kind or dtypes.string) for kind in found]


def _opened(name: str, compression: Optional[str]) -> Any:
    if compression != "GZIP":
        return gfile.GFile(name, "r")
    with gfile.GFile(name, "rb") as packed:
        data = packed.read()
    try:
        return io.StringIO(gzip.decompress(data).decode(), newline="")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise at_user_line(ValueError("compression_type is GZIP, but %s is no text that gzip packed: %s." % (name, error))) from None


def _rows(
    files: List[str], delimiter: str, use_quote_delim: bool, header: bool, compression: Optional[str] = None, comment: Optional[str] = None
) -> Iterator[List[str]]:
    for name in files:
        with _opened(name, compression) as opened:
            lines = opened if comment is None else (line for line in opened if not line.startswith(comment))
            found = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE)
            yield from itertools.islice(found, 1 if header else 0, None)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Any = None,
    column_defaults: Any = None,
    label_name: Optional[str] = None,
    select_columns: Any = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: Optional[int] = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: Optional[int] = None,
    prefetch_buffer_size: Optional[int] = None,
    num_parallel_reads: Optional[int] = None,
    sloppy: bool = False,
    num_rows_for_inference: Optional[int] = 100,
    compression_type: Optional[str] = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of lines of files as dicts of columns; (the dict, the label) with a label_name.

    Types come from column_defaults, or else from the first num_rows_for_inference lines (all of them: None). num_parallel_reads files are
    read in turns, always in the same order: `sloppy` would allow others. With ignore_errors, lines that cannot be read are left out.
    Raises: ValueError where no files match, names are repeated or unknown, or files that zlib compressed leave types or names to be guessed.
    """
    given = dict(locals())
    return csv_batches(**given, comment=None, float_type=None)


def _of_this_graph(default: Any) -> Any:
    """A default, made anew where it is a constant of another graph."""
    known = constant_value(default) if isinstance(default, Tensor) and default.graph is not get_default_graph() else None
    return default if known is None else constant(known, default.dtype)


def csv_batches(
    file_pattern: Any,
    batch_size: int,
    column_names: Any,
    column_defaults: Any,
    label_name: Optional[str],
    select_columns: Any,
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    header: bool,
    num_epochs: Optional[int],
    shuffle: bool,
    shuffle_buffer_size: int,
    shuffle_seed: Optional[int],
    prefetch_buffer_size: Optional[int],
    num_parallel_reads: Optional[int],
    sloppy: bool,
    num_rows_for_inference: Optional[int],
    compression_type: Optional[str],
    ignore_errors: bool,
    comment: Optional[str],
    float_type: Any,
) -> Dataset:
    """make_csv_dataset that leaves lines out that begin with `comment`; then no value has line ends in it. float_type: of columns of numbers that are
    not whole, where types are guessed."""
    del sloppy  # it allows another order, which no value asks for
    files = sorted(f for p in (file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]) for f in gfile.Glob(p))
    if not files:
        raise at_user_line(ValueError("No files match `file_pattern` %s." % (file_pattern,)))
    if compression_type not in (None, "", "GZIP") and (column_names is None or column_defaults is None):
        raise at_user_line(ValueError("compression_type %r is not supported for probing the files: name column_names and column_defaults." % compression_type))
    if column_names is None:
        if not header:
            raise at_user_line(ValueError("Cannot infer column names without a header line."))
        column_names = next(_rows(files[:1], field_delim, use_quote_delim, False, compression_type), [])
        for name in files[1:]:
            if next(_rows([name], field_delim, use_quote_delim, False, compression_type), []) != column_names:
                raise at_user_line(ValueError("All CSV files must have the same column names in their first lines: %s and %s differ." % (files[0], name)))
    if len(set(column_names)) != len(column_names):
        raise at_user_line(ValueError("Cannot have duplicate column names."))
    columns: List[int] = list(range(len(column_names)))
    if select_columns is not None:
        columns = sorted(c if isinstance(c, int) else column_names.index(c) for c in select_columns)
    names = [column_names[c] for c in columns]
    if column_defaults is None:
        seen = itertools.islice(_rows(files, field_delim, use_quote_delim, header, compression_type, comment), num_rows_for_inference)
        defaults = _guessed_defaults(seen, columns, na_value, float_type)
    else:
        defaults = [_of_this_graph(default) for default in column_defaults]
    if len(defaults) != len(names):
        raise at_user_line(ValueError("There are %d column_defaults for %d columns." % (len(defaults), len(names))))
    if label_name is not None and label_name not in names:
        raise at_user_line(ValueError("`label_name` provided must be one of the columns."))

    def without_comments(name: Any) -> Dataset:
        lines = TextLineDataset(name, compression_type).skip(1 if header else 0)
        lines = lines.filter(lambda line: gen_ops.not_equal(gen_ops.substr(line, 0, len(comment or "")), comment))
        chosen = None if select_columns is None else columns
        return lines.map(lambda line: tuple(parsing_ops.decode_csv(line, defaults, field_delim, use_quote_delim, na_value=na_value, select_cols=chosen)))

    def of(name: Any) -> Dataset:
        made = (
            without_comments(name)
            if comment
            else CsvDataset(
                name,
                defaults,
                compression_type,
                header=header,
                field_delim=field_delim,
                use_quote_delim=use_quote_delim,
                na_value=na_value,
                select_cols=None if select_columns is None else columns,
            )
        )
        return made.apply(without_errors()) if ignore_errors else made

    rows: Any = Dataset.from_tensor_slices(files)
    rows = rows.flat_map(of) if (num_parallel_reads or 1) == 1 else rows.interleave(of, num_parallel_reads, 1)
    if shuffle:
        rows = rows.apply(shuffle_and_repeat(shuffle_buffer_size, num_epochs, shuffle_seed))
    elif num_epochs != 1:
        rows = rows.repeat(num_epochs)

    def named(*values: Any) -> Any:
        made = dict(zip(names, values))
        return made if label_name is None else (made, made.pop(label_name))

    rows = rows.batch(batch_size, drop_remainder=num_epochs is None).map(named)
    return rows.prefetch(-1 if prefetch_buffer_size is None else prefetch_buffer_size)
