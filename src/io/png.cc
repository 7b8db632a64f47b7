// SPDX-License-Identifier: Apache-2.0
#include "io/png.h"

#include <png.h>

#include <limits>


namespace millrace {

StatusOr<std::string> EncodePng(int64_t width, int64_t height, int64_t channels, absl::Span<const uint8_t> pixels) {
  constexpr int64_t kMaxSide = 1 << 24;  // sizes and strides stay within the library's 32 bits
  constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  if (channels < 1 || channels > 4) return InvalidArgument("a PNG has 1 to 4 channels, got ", channels);
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    return InvalidArgument("a PNG of ", width, " x ", height, " pixels; each side must be in [1, ", kMaxSide, "]");
  }
  const int64_t bytes = width * height * channels;
  if (bytes != static_cast<int64_t>(pixels.size()) || bytes > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("PNG of ", width, " x ", height, " x ", channels, " from ", pixels.size(), " bytes");
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = kFormats[channels - 1];
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(size, '\0');
  if (png_image_write_to_memory(&image, out.data(), &size, 0, pixels.data(), 0, nullptr) == 0) {
    return Internal("cannot encode a PNG: ", static_cast<const char*>(image.message));
  }
  out.resize(size);
  return out;
}

}  // namespace millrace
