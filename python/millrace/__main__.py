# SPDX-License-Identifier: Apache-2.0
"""python -m millrace: the program `millrace`."""

import sys

from millrace.cli import main

sys.exit(main())
