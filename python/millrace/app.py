# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.app: running a program's main function."""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional

from millrace import flags


def run(main: Optional[Callable[..., Any]] = None, argv: Optional[List[str]] = None) -> None:
    """Reads the flags, calls main with the rest of the command line, and exits with what it returns."""
    try:
        rest = flags.FLAGS(sys.argv if argv is None else argv)
    except flags.Error as error:
        print("FATAL Flags parsing error: %s" % error, file=sys.stderr)
        sys.exit(1)
    main = main or sys.modules["__main__"].main
    sys.exit(main(rest))
