// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

// A PNG file of 8 bits a channel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. `pixels` are height rows of width pixels.
// InvalidArgument when their number does not fit, or a side is 0 or over 2^24.
StatusOr<std::string> EncodePng(int64_t width, int64_t height, int64_t channels, absl::Span<const uint8_t> pixels);

}  // namespace millrace
