// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "io/png.h"
#include "io/png_errors.h"

namespace millrace {
namespace {

constexpr int kColourTypes[] = {
    PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};

class Encoder {
 public:
  explicit Encoder(StopRequest stop) : errors_(stop) {}
  ~Encoder() {
    png_destroy_write_struct(&png_, &info_);
    std::free(bytes_);
  }

  StatusOr<std::string> Encode(const void* pixels, const ImageSize& size, int bits, int compression) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::OnError, PngErrors::OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return ResourceExhausted("no memory to encode a PNG");
    MR_RETURN_IF_ERROR(errors_.Try([&] {
      png_set_write_fn(png_, this, Append, [](png_structp) {});
      png_set_compression_level(png_, compression);
      png_set_IHDR(
          png_, info_, static_cast<png_uint_32>(size.width), static_cast<png_uint_32>(size.height), bits,
          kColourTypes[size.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
      png_write_info(png_, info_);
      if (bits == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
      const auto* row = static_cast<png_const_bytep>(pixels);
      for (int64_t y = 0; y < size.height; ++y, row += size.row() * bits / 8) {
        errors_.StopIfAsked(y);
        png_write_row(png_, row);
      }
      png_write_end(png_, nullptr);
    }));
    return std::string(bytes_, used_);
  }

 private:
  static void Append(png_structp png, png_bytep data, size_t n) {
    Encoder& self = *static_cast<Encoder*>(png_get_io_ptr(png));
    if (self.size_ - self.used_ < n) {
      const size_t size = std::max(2 * self.size_, self.used_ + n + 4096);
      auto* bytes = static_cast<char*>(std::realloc(self.bytes_, size));
      if (bytes == nullptr) png_error(png, "out of memory");
      self.bytes_ = bytes;
      self.size_ = size;
    }
    std::memcpy(self.bytes_ + self.used_, data, n);
    self.used_ += n;
  }

  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char* bytes_ = nullptr;
  size_t used_ = 0, size_ = 0;
};

StatusOr<std::string> Encode(const void* pixels, const ImageSize& size, int bits, int compression, StopRequest stop) {
  constexpr int64_t kMaxSide = 1 << 24;
  if (size.channels < 1 || size.channels > 4) return InvalidArgument("a PNG has 1 to 4 channels, got ", size.channels);
  if (size.width < 1 || size.height < 1 || size.width > kMaxSide || size.height > kMaxSide) {
    return Internal(
        "a PNG has 1 to ", kMaxSide, " pixels on each side, the image has ", size.height, " x ", size.width);
  }
  if (compression < -1 || compression > 9) return InvalidArgument("compression is ", compression, ", want -1 to 9");
  return Encoder(stop).Encode(pixels, size, bits, compression);
}

}  // namespace

StatusOr<std::string> EncodePng(const uint8_t* pixels, const ImageSize& size, int compression, StopRequest stop) {
  return Encode(pixels, size, 8, compression, stop);
}
StatusOr<std::string> EncodePng(const uint16_t* pixels, const ImageSize& size, int compression, StopRequest stop) {
  return Encode(pixels, size, 16, compression, stop);
}

}  // namespace millrace
