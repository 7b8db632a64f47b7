// SPDX-License-Identifier: Apache-2.0
#include "io/image_pixels.h"

#include "absl/strings/match.h"

namespace millrace {

ImageFormat FormatOfImage(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (absl::StartsWith(bytes, "GIF8")) return ImageFormat::kGif;
  if (absl::StartsWith(bytes, "BM")) return ImageFormat::kBmp;
  return ImageFormat::kUnknown;
}

}  // namespace millrace
