// SPDX-License-Identifier: Apache-2.0
// Reads checkpoints of format V1: tables that hold tensors as messages.
#pragma once

#include <memory>
#include <string>

#include "io/checkpoint_reader.h"

namespace millrace {

// `pattern`: a file, or files with * and ? in their base name. NotFound when none matches.
StatusOr<std::unique_ptr<CheckpointReader>> OpenV1Checkpoint(Env& env, const std::string& pattern);

}  // namespace millrace
