// SPDX-License-Identifier: Apache-2.0
#include "io/jpeg.h"

#include <algorithm>
#include <cstdlib>

#include "io/jpeg_errors.h"

namespace millrace {
namespace {

constexpr int64_t kMaxSide = JPEG_MAX_DIMENSION;
constexpr size_t kMaxMarker = 65533;  // bytes of a marker's contents
constexpr absl::string_view kXmpName("http://ns.adobe.com/xap/1.0/\0", 29);

// Memory that grows with what the library writes.
class Destination {
 public:
  ~Destination() { std::free(bytes_); }
  void Open(j_compress_ptr info) {
    info->dest = &manager_.public_part;
    manager_.owner = this;
    manager_.public_part.init_destination = [](j_compress_ptr i) { Of(i).Grow(i); };
    manager_.public_part.empty_output_buffer = [](j_compress_ptr i) -> boolean {
      Of(i).Grow(i);
      return TRUE;
    };
    manager_.public_part.term_destination = [](j_compress_ptr) {};
  }
  std::string Contents() const { return std::string(bytes_, size_ - manager_.public_part.free_in_buffer); }

 private:
  struct WithOwner {
    jpeg_destination_mgr public_part = {};
    Destination* owner = nullptr;
  };
  static Destination& Of(j_compress_ptr info) { return *reinterpret_cast<WithOwner*>(info->dest)->owner; }
  void Grow(j_compress_ptr info) {  // when all of it is full
    const size_t size = std::max<size_t>(2 * size_, 16384);
    auto* bytes = static_cast<char*>(std::realloc(bytes_, size));
    if (bytes == nullptr) JpegErrors::Of(reinterpret_cast<j_common_ptr>(info)).Fail("out of memory");
    manager_.public_part.next_output_byte = reinterpret_cast<JOCTET*>(bytes + size_);
    manager_.public_part.free_in_buffer = size - size_;
    bytes_ = bytes;
    size_ = size;
  }

  WithOwner manager_;
  char* bytes_ = nullptr;
  size_t size_ = 0;
};

class Encoder {
 public:
  explicit Encoder(StopRequest stop) : errors_(stop) {}
  ~Encoder() {
    if (created_) jpeg_destroy_compress(&info_);
  }
  StatusOr<std::string> Encode(const uint8_t* pixels, const ImageSize& size, const JpegWriting& how) {
    info_.err = errors_.Manager();
    const std::string xmp = how.xmp_metadata.empty() ? "" : absl::StrCat(kXmpName, how.xmp_metadata);
    MR_RETURN_IF_ERROR(errors_.Try([&] {
      Start(size, how);
      if (!xmp.empty()) {
        jpeg_write_marker(
            &info_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(xmp.data()), static_cast<unsigned>(xmp.size()));
      }
      for (int64_t y = 0; y < size.height; ++y) {
        auto* row = const_cast<JSAMPLE*>(pixels + y * size.row());
        jpeg_write_scanlines(&info_, &row, 1);
      }
      jpeg_finish_compress(&info_);
    }));
    return destination_.Contents();
  }

 private:
  void Start(const ImageSize& size, const JpegWriting& how) {
    jpeg_create_compress(&info_);
    created_ = true;
    destination_.Open(&info_);
    info_.progress = errors_.Progress();
    info_.image_width = static_cast<JDIMENSION>(size.width);
    info_.image_height = static_cast<JDIMENSION>(size.height);
    info_.input_components = static_cast<int>(size.channels);
    info_.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info_);
    info_.optimize_coding = how.optimize_size ? TRUE : FALSE;
    info_.density_unit = how.density_per_cm ? 2 : 1;
    info_.X_density = static_cast<UINT16>(how.x_density);
    info_.Y_density = static_cast<UINT16>(how.y_density);
    jpeg_set_quality(&info_, how.quality, TRUE);
    if (how.progressive) jpeg_simple_progression(&info_);
    for (int i = 0; !how.chroma_downsampling && i < info_.num_components; ++i) {
      info_.comp_info[i].h_samp_factor = info_.comp_info[i].v_samp_factor = 1;
    }
    jpeg_start_compress(&info_, TRUE);
  }

  JpegErrors errors_;
  Destination destination_;
  jpeg_compress_struct info_ = {};
  bool created_ = false;
};

}  // namespace

StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, const ImageSize& size, const JpegWriting& how,
                                 StopRequest stop) {
  if (size.channels != 1 && size.channels != 3)
    return InvalidArgument("a JPEG has 1 or 3 channels, got ", size.channels);
  if (size.height < 1 || size.width < 1 || size.height > kMaxSide || size.width > kMaxSide ||
      size.height * size.width > kMaxPixels) {
    return Internal(
        "a JPEG has 1 to ", kMaxSide, " pixels on each side, the image has ", size.height, " x ", size.width);
  }
  if (how.xmp_metadata.size() > kMaxMarker - kXmpName.size()) {
    return Internal("xmp_metadata of ", how.xmp_metadata.size(), " bytes, want at most ", kMaxMarker - kXmpName.size());
  }
  return Encoder(stop).Encode(pixels, size, how);
}

}  // namespace millrace
