// SPDX-License-Identifier: Apache-2.0
// PNG files (ISO 15948), by way of libpng.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "io/image_pixels.h"

namespace millrace {

// A PNG file of 8 or 16 bits a channel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. `compression` is zlib's level, -1 its
// default. InvalidArgument for other numbers of channels, Internal for an image without pixels or with a side over
// 2^24.
StatusOr<std::string> EncodePng(const uint8_t* pixels, const ImageSize& size, int compression, StopRequest stop);
StatusOr<std::string> EncodePng(const uint16_t* pixels, const ImageSize& size, int compression, StopRequest stop);

// Pixels of 1 to 4 channels, 0: as many as the file has; alpha is made up or left out. InvalidArgument when the file
// cannot be read or is too large.
Status DecodePng(absl::string_view bytes, int64_t channels, PixelMemory<uint8_t> memory, StopRequest stop);
Status DecodePng(absl::string_view bytes, int64_t channels, PixelMemory<uint16_t> memory, StopRequest stop);

}  // namespace millrace
