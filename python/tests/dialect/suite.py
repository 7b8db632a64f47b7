# SPDX-License-Identifier: Apache-2.0
"""The whole table."""

import table_arguments  # noqa: F401 - adds its cases
import table_images  # noqa: F401 - adds its cases
import table_linalg  # noqa: F401 - adds its cases
import table_parsing  # noqa: F401 - adds its cases
import table_programs  # noqa: F401 - adds its cases
import table_state  # noqa: F401 - adds its cases
from table import CASES  # noqa: F401
