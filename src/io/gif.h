// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/image_pixels.h"

namespace millrace {

// The frames of a GIF (GIF89a, 1990) as RGB. All have the size of the largest one; each is drawn over the one before,
// on black, whatever the file says about what to do with frames that have been shown. `max_frames` of them (-1: all).
//
// A file that breaks off or is wrong after its first frame gives the frames until there. InvalidArgument when there is
// none, or a pixel has no colour.
Status DecodeGif(absl::string_view bytes, int64_t max_frames, PixelMemory<uint8_t> memory, StopRequest stop);

}  // namespace millrace
