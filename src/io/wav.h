// SPDX-License-Identifier: Apache-2.0
// Sound as 16-bit PCM in RIFF files. A sample s in [-1, 1] is stored as s times 32768.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

// `samples` holds one value per channel, frame by frame.
std::string EncodeWav(absl::Span<const float> samples, uint64_t channels, uint64_t rate);

struct WavSound {
  int64_t channels = 0;
  int64_t frames = 0;
  int32_t rate = 0;
  absl::string_view data;  // little-endian, in the file's memory
};
// InvalidArgument: not such a file, or one that is cut off.
StatusOr<WavSound> ReadWav(absl::string_view file);
float WavSample(const WavSound& sound, int64_t frame, int64_t channel);

}  // namespace millrace
