# SPDX-License-Identifier: Apache-2.0
"""Protocol messages (GraphDef, ConfigProto, Example, Summary, ...) without a protobuf package.

message.py: the encoding and the interface that programs know from protobuf. definitions.py: the messages.
"""
