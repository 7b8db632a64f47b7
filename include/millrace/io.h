// SPDX-License-Identifier: Apache-2.0
// Checkpoints and event files of the C++ client.
#pragma once

#include "millrace/event_writer.h"
#include "millrace/saver.h"
