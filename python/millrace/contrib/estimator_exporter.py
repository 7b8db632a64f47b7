# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.estimator.StepsExporter: exports at some steps."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Sequence

from millrace import gfile, tf_logging
from millrace.estimator.exporter import _SavedModelExporter
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.summary import summary_iterator


class StepsExporter(_SavedModelExporter):
    """Exports at the first evaluation at or after each of some steps; those that the event files of evaluations have are done."""

    def __init__(
        self,
        steps_to_keep: Sequence[int],
        name: str = "steps_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: Optional[str] = "eval/*.tfevents.*",
        assets_extra: Any = None,
        as_text: bool = False,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        steps = [step for step in steps_to_keep if isinstance(step, int) and step > 0]
        if not steps:
            raise at_user_line(ValueError("`steps_to_keep` list must have at least one positive integer"))
        if steps != list(steps_to_keep):
            tf_logging.warning("Of `steps_to_keep` only the positive integers are kept: %s", steps)
        self._left, self._pattern = sorted(steps), event_file_pattern
        self._folder: Optional[str] = None

    def export(self, estimator: Any, export_path: Any, checkpoint_path: str, eval_result: Dict[str, Any], is_the_final_export: bool) -> Any:
        """Exports where a step is due."""
        del is_the_final_export  # steps count, the last is none by itself
        if not eval_result or GraphKeys.GLOBAL_STEP not in eval_result:
            raise at_user_line(ValueError("`eval_result` is empty, or does not have global step: %s" % (eval_result,)))
        if self._pattern and self._folder != estimator.model_dir:
            self._folder = estimator.model_dir
            done = max(self._evaluated(), default=0)
            self._left = [step for step in self._left if step > done]
        now = eval_result[GraphKeys.GLOBAL_STEP]
        due = [step for step in self._left if step <= now]
        if not due:
            return None
        self._left = self._left[len(due) :]
        if due[-1] != now:
            tf_logging.warning("Performing model export at step %d instead of %d, as no evaluation took place at step %d.", now, due[-1], due[-1])
        return self._write(estimator, export_path, checkpoint_path)

    def _evaluated(self) -> Any:
        assert self._folder is not None
        assert self._pattern is not None
        return [event.step for path in gfile.Glob(os.path.join(self._folder, self._pattern)) for event in summary_iterator(path)]
