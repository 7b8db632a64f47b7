// SPDX-License-Identifier: Apache-2.0
// The positions of random streams as a text, one line per node, which programs keep beside a checkpoint.
#pragma once

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "kernel/random_stream.h"

namespace millrace {

std::string EncodeRandomPositions(const RandomPositions& positions);

// InvalidArgument when the text is not what EncodeRandomPositions gives.
StatusOr<RandomPositions> DecodeRandomPositions(absl::string_view text);

}  // namespace millrace
