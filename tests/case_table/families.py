# SPDX-License-Identifier: Apache-2.0
"""All families of rows."""

from __future__ import annotations

import array_rows
import arrangement_rows
import bessel_rows
import contrib_rows
import ctc_rows
import elementwise_rows
import image_file_rows
import image_rows
import image_window_rows
import linalg_rows
import linalg_spectral_rows
import matrix_function_rows
import nn_rows
import nn_window_rows
import parsing_rows
import quantize_rows
import ragged_rows
import random_rows
import reduction_rows
import signal_rows
import solver_rows
import sparse_math_rows
import sparse_rows
import special_rows
import state_rows
import string_rows
import summary_rows
import text_rows
import training_rows
import tree_rows
from table import Table


def add_to(table: Table) -> None:
    for family in (
        elementwise_rows,
        reduction_rows,
        ragged_rows,
        array_rows,
        nn_rows,
        linalg_rows,
        linalg_spectral_rows,
        arrangement_rows,
        state_rows,
        training_rows,
        solver_rows,
        tree_rows,
        random_rows,
        summary_rows,
        sparse_rows,
        sparse_math_rows,
        ctc_rows,
        image_rows,
        image_file_rows,
        image_window_rows,
        string_rows,
        text_rows,
        parsing_rows,
        signal_rows,
        nn_window_rows,
        special_rows,
        bessel_rows,
        quantize_rows,
        matrix_function_rows,
        contrib_rows,
    ):
        family.add_to(table)
