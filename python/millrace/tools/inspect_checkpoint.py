# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.tools.inspect_checkpoint: what is in a checkpoint."""

from __future__ import annotations

import argparse
import re
from typing import Any

import numpy as np

from millrace.train.saver import NewCheckpointReader


def print_tensors_in_checkpoint_file(
    file_name: str, tensor_name: Any = "", all_tensors: bool = False, all_tensor_names: bool = False, count_exclude_pattern: str = ""
) -> None:
    """Prints one tensor, all tensors, or their types and shapes; then how many numbers there are, but for names with a pattern in them."""
    reader = NewCheckpointReader(file_name)
    if tensor_name:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    elif all_tensors or all_tensor_names:
        for name in sorted(reader.get_variable_to_shape_map()):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    else:
        print(reader.debug_string().decode())
    if not tensor_name:
        shapes = {n: s for n, s in reader.get_variable_to_shape_map().items() if not (count_exclude_pattern and re.search(count_exclude_pattern, n))}
        print("# Total number of params: %d" % sum(int(np.prod(s, dtype=np.int64)) for s in shapes.values()))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--file_name", required=True)
    parser.add_argument("--tensor_name", default="")
    parser.add_argument("--all_tensors", action="store_true")
    parser.add_argument("--all_tensor_names", action="store_true")
    parser.add_argument("--count_exclude_pattern", default="")
    given = parser.parse_args()
    print_tensors_in_checkpoint_file(given.file_name, given.tensor_name, given.all_tensors, given.all_tensor_names, given.count_exclude_pattern)


if __name__ == "__main__":
    main()
