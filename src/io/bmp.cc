// SPDX-License-Identifier: Apache-2.0
#include "io/bmp.h"

#include <cstdlib>
#include <limits>

#include "io/coding.h"

namespace millrace {
namespace {

struct Header {
  int64_t first_pixel, width, height;  // a negative height: the first row is the uppermost
  int64_t channels;
};

StatusOr<Header> ReadHeader(absl::string_view bytes) {
  constexpr size_t kMinBytes = 32;
  if (bytes.size() < kMinBytes) return InvalidArgument("a BMP of ", bytes.size(), " bytes, want at least ", kMinBytes);
  const auto number = [&](size_t at) { return static_cast<int32_t>(ReadFixed(bytes.data() + at, 4)); };
  const auto bits = static_cast<int64_t>(ReadFixed(bytes.data() + 28, 2));
  const Header h{number(10), number(18), number(22), bits / 8};
  if (h.channels != 1 && h.channels != 3 && h.channels != 4) {
    return InvalidArgument("a BMP of ", bits, " bits a pixel, want 8, 24 or 32");
  }
  if (h.width <= 0 || h.height == 0) return InvalidArgument("a BMP of ", h.width, " x ", h.height, " pixels");
  if (h.first_pixel < 0) return InvalidArgument("a BMP whose pixels start at ", h.first_pixel);
  if (h.width * std::abs(h.height) >= std::numeric_limits<int32_t>::max() / 8) {
    return InvalidArgument("a BMP of too many pixels: ", h.width, " x ", h.height);
  }
  return h;
}

void CopyRow(const uint8_t* in, int64_t in_channels, const ImageSize& size, uint8_t* out) {
  for (int64_t x = 0; x < size.width; ++x, in += in_channels, out += size.channels) {
    const bool grey = in_channels == 1;
    out[0] = in[grey ? 0 : 2];
    if (size.channels == 1) continue;
    out[1] = in[grey ? 0 : 1];
    out[2] = in[0];
    if (size.channels == 4) out[3] = in_channels == 4 ? in[3] : 255;
  }
}

}  // namespace

Status DecodeBmp(absl::string_view bytes, int64_t channels, PixelMemory<uint8_t> memory, StopRequest stop) {
  MR_ASSIGN_OR_RETURN(const Header h, ReadHeader(bytes));
  const ImageSize size{std::abs(h.height), h.width, channels != 0 ? channels : h.channels};
  const int64_t stride = (h.width * h.channels + 3) / 4 * 4;
  const int64_t needed = h.first_pixel + (size.height - 1) * stride + h.width * h.channels;
  if (needed > static_cast<int64_t>(bytes.size())) {
    return InvalidArgument("a BMP of ", h.width, " x ", h.height, " pixels in ", bytes.size(), " bytes, want ", needed);
  }
  MR_ASSIGN_OR_RETURN(uint8_t* const out, memory(1, size));
  const auto* pixels = reinterpret_cast<const uint8_t*>(bytes.data()) + h.first_pixel;
  for (int64_t y = 0; y < size.height; ++y) {
    if (y % 64 == 0 && stop()) return StoppedDecoding();
    const int64_t row = h.height < 0 ? y : size.height - 1 - y;
    CopyRow(pixels + row * stride, h.channels, size, out + y * size.row());
  }
  return absl::OkStatus();
}

}  // namespace millrace
