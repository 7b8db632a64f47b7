// SPDX-License-Identifier: Apache-2.0
// JPEG files (ITU T.81), by way of libjpeg-turbo.
#pragma once

#include <optional>
#include <string>

#include "io/image_pixels.h"

namespace millrace {

struct ImageWindow {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

struct JpegReading {
  int64_t channels = 0;               // 1 or 3; 0: as the file has, 3 at most
  int64_t ratio = 1;                  // 1, 2, 4 or 8: so many times smaller
  bool smooth_colours = true;         // interpolates colours that the file has at a lower resolution
  bool fast_transform = true;         // of less accuracy
  bool recover_truncated = false;     // a file that breaks off is taken as if it ended there
  float acceptable_fraction = 1;      // of the rows; the others are black
  std::optional<ImageWindow> window;  // of the scaled image
};
// InvalidArgument when the file cannot be read, is too large, or the window is not within it.
Status DecodeJpeg(absl::string_view bytes, const JpegReading& how, PixelMemory<uint8_t> memory, StopRequest stop);
StatusOr<ImageSize> SizeOfJpeg(absl::string_view bytes);

struct JpegWriting {
  int quality = 95;  // 0 to 100
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  bool density_per_cm = false;  // else per inch
  int x_density = 300, y_density = 300;
  std::string xmp_metadata;
};
// `pixels` has size.elements() bytes, 1 or 3 channels. Internal for an image without pixels or one that is too large
// for the format.
StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const ImageSize& size, const JpegWriting& how,
                                 StopRequest stop);

}  // namespace millrace
