// SPDX-License-Identifier: Apache-2.0
#include "io/jpeg.h"

#include <algorithm>
#include <memory>

#include "io/jpeg_errors.h"

namespace millrace {
namespace {

// Bytes in memory. Where they end too early, a reader that recovers finds end marks.
//
// The library asks for more also in the midst of something, whose bytes it has not given back yet: it then starts again
// there later, or, when told that there is more, reads the same bytes once more. TensorFlow tells it so, and what it
// makes of such files is expected here too; but it may go on like this for ever, so this is counted.
struct Source {
  jpeg_source_mgr public_part = {};
  const JOCTET* data = nullptr;
  bool recover = false;
  const JOCTET* last = nullptr;  // where the library was when it asked last
  bool ended = false;
  int repeats = 0;  // of this without progress

  static constexpr int kMaxRepeats = 4096;

  static Source& Of(j_decompress_ptr info) { return *reinterpret_cast<Source*>(info->src); }

  void Open(absl::string_view bytes, bool recover_truncated) {
    data = reinterpret_cast<const JOCTET*>(bytes.data());
    recover = recover_truncated;
    public_part.next_input_byte = data;
    public_part.bytes_in_buffer = bytes.size();
    public_part.init_source = [](j_decompress_ptr) {};
    public_part.term_source = [](j_decompress_ptr) {};
    public_part.resync_to_restart = jpeg_resync_to_restart;
    public_part.fill_input_buffer = Fill;
    public_part.skip_input_data = [](j_decompress_ptr info, long count) {
      if (count <= 0) return;
      jpeg_source_mgr& m = Of(info).public_part;
      const size_t n = std::min(static_cast<size_t>(count), m.bytes_in_buffer);
      m.next_input_byte += n;
      m.bytes_in_buffer -= n;
    };
  }

  static boolean Fill(j_decompress_ptr info) {
    static constexpr JOCTET kEnd[2] = {0xff, JPEG_EOI};
    Source& source = Of(info);
    jpeg_source_mgr& m = source.public_part;
    source.repeats = m.next_input_byte == source.last || source.ended ? source.repeats + 1 : 0;
    source.last = m.next_input_byte;
    const bool endless = source.repeats > kMaxRepeats;
    if (m.bytes_in_buffer != 0 && !endless) return source.recover ? TRUE : FALSE;
    if (!source.recover || m.next_input_byte == source.data || endless) {
      JpegErrors::Of(reinterpret_cast<j_common_ptr>(info)).Fail("the data break off");
    }
    source.ended = true;
    m.next_input_byte = kEnd;
    m.bytes_in_buffer = 2;
    return TRUE;
  }
};

bool IsWithin(const ImageWindow& w, int64_t height, int64_t width) {
  return w.height > 0 && w.width > 0 && w.top >= 0 && w.left >= 0 && w.height <= height - w.top &&
         w.width <= width - w.left;
}

class Decoder {
 public:
  Decoder(const JpegReading& how, StopRequest stop) : how_(how), errors_(stop) {}
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }

  Status ReadHeader(absl::string_view bytes) {
    info_.err = errors_.Manager();
    source_.Open(bytes, how_.recover_truncated);
    int state = JPEG_SUSPENDED;
    MR_RETURN_IF_ERROR(errors_.Try([&] {
      jpeg_create_decompress(&info_);
      created_ = true;
      info_.src = &source_.public_part;
      info_.progress = errors_.Progress();
      state = jpeg_read_header(&info_, TRUE);
    }));
    return state == JPEG_HEADER_OK ? absl::OkStatus() : InvalidArgument("bad JPEG: the header breaks off");
  }
  ImageSize SizeInFile() { return {info_.image_height, info_.image_width, info_.num_components}; }

  Status Decode(PixelMemory<uint8_t> memory) {
    MR_RETURN_IF_ERROR(Configure());
    window_ = how_.window.value_or(ImageWindow{0, 0, info_.output_height, info_.output_width});
    if (!IsWithin(window_, info_.output_height, info_.output_width)) {
      return InvalidArgument(
          "Invalid JPEG data or crop window: crop_window [", window_.top, ", ", window_.left, ", ", window_.height,
          ", ", window_.width, "] is not within the image of ", info_.output_height, " x ", info_.output_width,
          " pixels");
    }
    MR_RETURN_IF_ERROR(errors_.Try([&] { Start(); }));
    const ImageSize size{window_.height, window_.width, channels_};
    MR_ASSIGN_OR_RETURN(uint8_t* const out, memory(1, size));
    // One row of the library's; its width is that of whole blocks.
    const int64_t row = info_.output_width * int64_t{info_.output_components};
    line_ = std::make_unique<JSAMPLE[]>(static_cast<size_t>(row));
    MR_RETURN_IF_ERROR(errors_.Try([&] { ReadRows(size, out); }));
    const auto rows = static_cast<float>(rows_read_) / static_cast<float>(size.height);
    if (rows < std::min(1.0f, how_.acceptable_fraction)) {
      return InvalidArgument("bad JPEG: ", rows_read_, " of ", size.height, " rows could be read");
    }
    std::fill(out + rows_read_ * size.row(), out + size.elements(), uint8_t{0});
    return absl::OkStatus();
  }

 private:
  bool Inks() const { return info_.out_color_space == JCS_CMYK; }

  Status Configure() {
    channels_ = how_.channels != 0 ? how_.channels : std::min(info_.num_components, 3);
    if (channels_ != 1 && channels_ != 3) return InvalidArgument("a JPEG has 1 or 3 channels, wanted are ", channels_);
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = channels_ == 1 ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    info_.do_fancy_upsampling = how_.smooth_colours ? TRUE : FALSE;
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(how_.ratio);
    info_.dct_method = how_.fast_transform ? JDCT_IFAST : JDCT_ISLOW;
    MR_RETURN_IF_ERROR(errors_.Try([&] { jpeg_calc_output_dimensions(&info_); }));
    const int64_t height = info_.output_height, width = info_.output_width;
    if (height <= 0 || width <= 0 || height * width > kMaxPixels) {
      return InvalidArgument("a JPEG of ", height, " x ", width, " pixels is too large or has none");
    }
    return absl::OkStatus();
  }

  // Columns are cut to whole blocks around the window, rows before it are passed over.
  void Start() {
    jpeg_start_decompress(&info_);
    if (!how_.window) return;
    auto left = static_cast<JDIMENSION>(window_.left), width = static_cast<JDIMENSION>(window_.width);
    jpeg_crop_scanline(&info_, &left, &width);
    jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(window_.top));
  }

  void ReadRows(const ImageSize& size, uint8_t* out) {
    const int64_t components = info_.output_components;
    const bool direct = !Inks() && info_.output_width == static_cast<JDIMENSION>(size.width);
    const JSAMPLE* const from = line_.get() + (info_.output_width - size.width) * components;
    for (rows_read_ = 0; rows_read_ < size.height; ++rows_read_, out += size.row()) {
      JSAMPLE* line = direct ? out : line_.get();
      if (jpeg_read_scanlines(&info_, &line, 1) == 0) {
        jpeg_abort_decompress(&info_);
        if (how_.recover_truncated) RepeatRow(size, out);
        return;
      }
      if (Inks()) {
        Mix(from, size.width, out);
      } else if (!direct) {
        std::copy_n(from, size.row(), out);
      }
    }
    if (how_.window && info_.output_scanline < info_.output_height) {
      jpeg_skip_scanlines(&info_, info_.output_height - info_.output_scanline);
    }
    jpeg_finish_decompress(&info_);
  }
  void RepeatRow(const ImageSize& size, uint8_t* out) {
    for (; rows_read_ < size.height; ++rows_read_, out += size.row()) {
      if (rows_read_ == 0) {
        std::fill_n(out, size.row(), uint8_t{0});
      } else {
        std::copy_n(out - size.row(), size.row(), out);
      }
    }
  }
  // Cyan, magenta, yellow and black to red, green and blue. Files of Adobe's programs hold what is left of the light.
  void Mix(const JSAMPLE* inks, int64_t width, uint8_t* out) const {
    for (int64_t i = 0; i < width; ++i, inks += 4, out += 3) {
      for (int k = 0; k < 3; ++k) {
        const int ink = info_.saw_Adobe_marker ? inks[k] : 255 - inks[k];
        const int light = info_.saw_Adobe_marker ? inks[3] : 255 - inks[3];
        out[k] = static_cast<uint8_t>(ink * light / 255);
      }
    }
  }

  const JpegReading& how_;
  JpegErrors errors_;
  Source source_;
  jpeg_decompress_struct info_ = {};
  bool created_ = false;
  int64_t channels_ = 0, rows_read_ = 0;
  ImageWindow window_;
  std::unique_ptr<JSAMPLE[]> line_;
};

}  // namespace

Status DecodeJpeg(absl::string_view bytes, const JpegReading& how, PixelMemory<uint8_t> memory, StopRequest stop) {
  Decoder decoder(how, stop);
  MR_RETURN_IF_ERROR(decoder.ReadHeader(bytes));
  return decoder.Decode(memory);
}

StatusOr<ImageSize> SizeOfJpeg(absl::string_view bytes) {
  const JpegReading how;
  const auto never = [] { return false; };
  Decoder decoder(how, never);
  MR_RETURN_IF_ERROR(decoder.ReadHeader(bytes));
  return decoder.SizeInFile();
}

}  // namespace millrace
