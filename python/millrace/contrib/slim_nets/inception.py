# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""The inception networks of all versions."""

from millrace.contrib.slim_nets.inception_parts import arguments as inception_arg_scope  # noqa: F401
from millrace.contrib.slim_nets.inception_v1 import inception_v1, inception_v1_arg_scope, inception_v1_base  # noqa: F401
from millrace.contrib.slim_nets.inception_v2 import inception_v2, inception_v2_arg_scope, inception_v2_base  # noqa: F401
from millrace.contrib.slim_nets.inception_v3 import inception_v3, inception_v3_arg_scope, inception_v3_base  # noqa: F401
