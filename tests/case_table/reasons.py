# SPDX-License-Identifier: Apache-2.0
"""Ops without a row, each with the place where it is tested."""

from __future__ import annotations

_FUNCTIONS = "of function bodies only: src/graph/function_call_test.cc"
_TRANSFERS = "made by partitioning only: tests/session_test.cc runs graphs over several devices"
_LOOPS = "parts of loops: tests/function_test.cc, tests/session_stress_test.cc"
_CALLS = "has functions: tests/function_test.cc"
_CLIENTS = "calls the client: python/tests/test_py_func.py"
_FILES = "of files: tests/bad_inputs/file_cases.cc, python/tests/programs/images_and_strings.py"
_HASHES = "src/kernels/cpu/string_hash_test.cc, with TensorFlow's buckets of texts of all lengths"
_VOLUMES = "python/tests/test_windows.py: values against loops, gradients against differences"
_CELLS = "src/kernels/cpu/rnn_kernels_test.cc has its own oracle and differences"
_WITH_FUNCTIONS = """If StatelessIf While StatelessWhile Case StatelessCase For PartitionedCall StatefulPartitionedCall
    RemoteCall SymbolicGradient"""
_RECURRENT = """BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2 LSTMBlockCell LSTMBlockCellGrad GRUBlockCell
    GRUBlockCellGrad"""

REASONS: dict[str, str] = {
    "_Arg": _FUNCTIONS,
    "_Retval": _FUNCTIONS,
    "_Send": _TRANSFERS,
    "_Recv": _TRANSFERS,
    "_HostSend": _TRANSFERS,
    "_HostRecv": _TRANSFERS,
    "_Loop": _LOOPS,
    **dict.fromkeys("PyFunc PyFuncStateless EagerPyFunc".split(), _CLIENTS),
    **dict.fromkeys("StringToHashBucket StringToHashBucketFast StringToHashBucketStrong".split(), _HASHES),
    **dict.fromkeys("MaxPool3D MaxPool3DGrad MaxPool3DGradGrad AvgPool3D AvgPool3DGrad".split(), _VOLUMES),
    **dict.fromkeys("ReadFile WriteFile MatchingFiles".split(), _FILES),
    "FakeParam": "never runs: what a branch lacks, tests/function_test.cc",
    "TensorArrayGrad": "of the oldest arrays; src/kernels/cpu/step_objects_test.cc",
    **dict.fromkeys("Enter Exit NextIteration LoopCond RefEnter RefExit RefNextIteration".split(), _LOOPS),
    **dict.fromkeys(_WITH_FUNCTIONS.split(), _CALLS),
    **dict.fromkeys(_RECURRENT.split(), _CELLS),
}
