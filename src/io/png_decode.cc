// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include "io/png.h"
#include "io/png_errors.h"

namespace millrace {
namespace {

constexpr int64_t kMaxSide = int64_t{1} << 27;

class Decoder {
 public:
  Decoder(absl::string_view bytes, StopRequest stop) : rest_(bytes), errors_(stop) {}
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  // Reads the header and says how pixels are to be converted.
  StatusOr<ImageSize> Open(int64_t channels, int bits) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, PngErrors::OnError, PngErrors::OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) return ResourceExhausted("no memory to decode a PNG");
    MR_RETURN_IF_ERROR(errors_.Try([&] {
      png_set_read_fn(png_, this, Take);
      png_read_info(png_, info_);
      Configure(channels, bits);
    }));
    if (size_.width < 1 || size_.height < 1 || size_.width >= kMaxSide || size_.height >= kMaxSide ||
        size_.width * size_.height > kMaxPixels) {
      return InvalidArgument("a PNG of ", size_.height, " x ", size_.width, " pixels is too large");
    }
    const int64_t row_bytes = size_.row() * (narrow_ ? 1 : bits / 8);
    if (static_cast<int64_t>(png_get_rowbytes(png_, info_)) != row_bytes) {
      return InvalidArgument(
          "bad PNG: rows of ", png_get_rowbytes(png_, info_), " bytes where ", row_bytes, " are expected");
    }
    return size_;
  }

  // Rows of `row_bytes`, which may be more than a row of the file's.
  Status Read(uint8_t* out, int64_t row_bytes) {
    return errors_.Try([&] {
      for (int pass = 0; pass < passes_; ++pass) {
        for (int64_t y = 0; y < size_.height; ++y) {
          errors_.StopIfAsked(y);
          png_read_row(png_, out + y * row_bytes, nullptr);
        }
      }
      png_read_end(png_, info_);
    });
  }
  bool is_narrow() const { return narrow_; }  // the file has 8 bits a channel or less

 private:
  static void Take(png_structp png, png_bytep data, size_t n) {
    absl::string_view& rest = static_cast<Decoder*>(png_get_io_ptr(png))->rest_;
    if (rest.size() < n) png_error(png, "the data break off");
    std::memcpy(data, rest.data(), n);
    rest.remove_prefix(n);
  }

  void Configure(int64_t channels, int bits) {
    const int depth = png_get_bit_depth(png_, info_), type = png_get_color_type(png_, info_);
    const bool has_transparency = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    const bool has_alpha = (type & PNG_COLOR_MASK_ALPHA) != 0, is_grey = (type & PNG_COLOR_MASK_COLOR) == 0;
    if (channels == 0) {
      channels = type == PNG_COLOR_TYPE_PALETTE ? (has_transparency ? 4 : 3) : png_get_channels(png_, info_);
    }
    size_ = {png_get_image_height(png_, info_), png_get_image_width(png_, info_), channels};
    narrow_ = depth <= 8;
    const bool wants_alpha = channels % 2 == 0, wants_grey = channels < 3;
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (wants_alpha) {
      if (has_transparency) {
        png_set_tRNS_to_alpha(png_);
      } else if (!has_alpha) {
        png_set_add_alpha(png_, (1u << depth) - 1, PNG_FILLER_AFTER);
      }
    } else if (has_alpha || has_transparency) {
      png_set_strip_alpha(png_);
    }
    if (depth > 8 && bits <= 8) png_set_strip_16(png_);
    png_set_packing(png_);
    if (bits > 8 && std::endian::native == std::endian::little) png_set_swap(png_);
    if (wants_grey && !is_grey) png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, kRed, kGreen);
    if (!wants_grey && is_grey) png_set_gray_to_rgb(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  // Shares of brightness.
  static constexpr double kRed = 0.299, kGreen = 0.587;

  absl::string_view rest_;
  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  ImageSize size_;
  bool narrow_ = false;
  int passes_ = 1;
};

// Eight bits to sixteen in place: rows of bytes lie at the front of rows of words.
void Widen(uint16_t* pixels, const ImageSize& size) {
  for (int64_t y = 0; y < size.height; ++y, pixels += size.row()) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(pixels);
    for (int64_t i = size.row(); i-- > 0;) {
      const uint8_t v = bytes[i];
      pixels[i] = static_cast<uint16_t>(v * 257);
    }
  }
}

}  // namespace

Status DecodePng(absl::string_view bytes, int64_t channels, PixelMemory<uint8_t> memory, StopRequest stop) {
  Decoder decoder(bytes, stop);
  MR_ASSIGN_OR_RETURN(const ImageSize size, decoder.Open(channels, 8));
  MR_ASSIGN_OR_RETURN(uint8_t* const out, memory(1, size));
  return decoder.Read(out, size.row());
}

Status DecodePng(absl::string_view bytes, int64_t channels, PixelMemory<uint16_t> memory, StopRequest stop) {
  Decoder decoder(bytes, stop);
  MR_ASSIGN_OR_RETURN(const ImageSize size, decoder.Open(channels, 16));
  MR_ASSIGN_OR_RETURN(uint16_t* const out, memory(1, size));
  MR_RETURN_IF_ERROR(decoder.Read(reinterpret_cast<uint8_t*>(out), 2 * size.row()));
  if (decoder.is_narrow()) Widen(out, size);
  return absl::OkStatus();
}

}  // namespace millrace
