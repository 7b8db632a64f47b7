// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/image_pixels.h"

namespace millrace {

// An uncompressed BMP of 8, 24 or 32 bits a pixel as `channels` (3, 4; 0: as many as the file has) of RGBA; 8 bits are
// taken as shades of grey. InvalidArgument for anything else and for a file that is too short.
Status DecodeBmp(absl::string_view bytes, int64_t channels, PixelMemory<uint8_t> memory, StopRequest stop);

}  // namespace millrace
