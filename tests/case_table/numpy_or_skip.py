# SPDX-License-Identifier: Apache-2.0
"""NumPy, in whichever Python of this machine has it. The program that imports this starts again in Debian's Python when its own
lacks NumPy, and is skipped when that lacks it too."""

from __future__ import annotations

import os
import subprocess
import sys

_DEBIAN = "/usr/bin/python3"
try:
    import numpy as np  # noqa: F401
except ImportError:
    if sys.executable != _DEBIAN and os.path.exists(_DEBIAN) and not subprocess.call([_DEBIAN, "-c", "import numpy"], stderr=subprocess.DEVNULL):
        os.execv(_DEBIAN, [_DEBIAN, *sys.argv])
    print("skipped: no Python with NumPy (apt-get install python3-numpy)")
    sys.exit(77)  # what CTest takes for a skip
