# SPDX-License-Identifier: Apache-2.0
"""Events of a process of a cluster, one line each on standard error: as the library's own log lines, or JSON (MILLRACE_LOG_FORMAT=json)."""

from __future__ import annotations

import datetime
import json
import sys
from typing import Any, Dict

from millrace import settings


class Events:
    """Lines that always have the same fields, such as job, task and incarnation."""

    def __init__(self, **fields: Any) -> None:
        self.fields: Dict[str, Any] = fields
        self._is_json = settings.text("MILLRACE_LOG_FORMAT") == "json"

    def tell(self, event: str, level: str = "I", **facts: Any) -> None:
        """One line."""
        now = datetime.datetime.now(datetime.timezone.utc)
        if self._is_json:
            line = json.dumps(
                {"time": now.isoformat(timespec="microseconds").replace("+00:00", "Z"), "level": level, **self.fields, "text": event, **facts}, default=str
            )
        else:
            local = now.astimezone()
            line = " ".join(
                [local.strftime("%m-%d %H:%M:%S.%f"), level, *("%s=%s" % f for f in self.fields.items()), event, *("%s=%s" % f for f in facts.items())]
            )
        try:
            sys.stderr.write(line.replace("\n", "\\n") + "\n")
            sys.stderr.flush()
        except OSError:
            pass  # nobody reads any more, which is no event
