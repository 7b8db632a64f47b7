# SPDX-License-Identifier: Apache-2.0
"""A process that trains one net with one library, a few steps whenever it is told to.

  worker.py {millrace,tensorflow,torch,jax} NET {float32,float64} THREADS [LIBRARY]

Reads a number of steps per line, answers with the seconds that they took and the loss of the last one.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable

from nets import NETS

Step = Callable[[], float]


def main() -> None:
    peer, net, dtype, threads = sys.argv[1:5]
    step: Step = importlib.import_module("train_" + peer).make(NETS[net], dtype, int(threads), *sys.argv[5:])
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        loss = 0.0
        for _ in range(int(line)):
            loss = step()
        print(time.perf_counter() - start, loss, flush=True)


if __name__ == "__main__":
    main()
