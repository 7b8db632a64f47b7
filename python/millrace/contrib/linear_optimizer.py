# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.linear_optimizer: programs import it beside other optimizers."""

from typing import Any

from millrace.framework.errors import at_user_line


class SDCAOptimizer:
    """Is not there: dual coordinate ascent has no operations here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise at_user_line(NotImplementedError("SDCAOptimizer is not provided: use tf.train.FtrlOptimizer, with l1 and l2 regularization."))
