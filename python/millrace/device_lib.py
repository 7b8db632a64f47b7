# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.client.device_lib."""

from typing import Any, List

from millrace.protos import definitions


def list_local_devices(session_config: Any = None) -> List[Any]:
    """The devices of this process."""
    import millrace as tf

    with tf.Graph().as_default(), tf.Session(config=session_config) as session:
        return [
            definitions.DeviceAttributes(
                name=d.name.replace("/job:localhost/replica:0/task:0", ""), device_type=d.device_type, memory_limit=d.memory_limit_bytes
            )
            for d in session.list_devices()
        ]
