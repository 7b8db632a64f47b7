// SPDX-License-Identifier: Apache-2.0
// A GIF is a screen description followed by blocks: extensions, images, an end. An image's colour numbers are
// compressed by LZW (Welch 1984) with codes that grow from min_bits + 1 to 12 bits, and cut into pieces of up to 255
// bytes.
#include "io/gif.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace millrace {
namespace {

using Colours = absl::Span<const uint8_t>;  // three bytes each

struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  Colours colours;
  int transparent = -1;  // number of the colour that is not drawn
  std::vector<uint8_t> pixels;
};

class Bytes {
 public:
  explicit Bytes(absl::string_view all) : rest_(all) {}
  bool Byte(int* value) {
    if (rest_.empty()) return false;
    *value = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return true;
  }
  bool Number(int64_t* value) {  // 16 bits
    int low = 0, high = 0;
    if (!Byte(&low) || !Byte(&high)) return false;
    *value = low | high << 8;
    return true;
  }
  bool Take(size_t n, absl::string_view* bytes) {
    if (rest_.size() < n) return false;
    *bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }
  // The next piece of a chain; the empty one ends it.
  bool Piece(absl::string_view* bytes) {
    int n = 0;
    return Byte(&n) && Take(static_cast<size_t>(n), bytes);
  }
  // A table of 2^(1 + three bits of the flags) colours, when the flags say that there is one.
  bool ColourTable(int flags, Colours* colours) {
    if ((flags & 0x80) == 0) return true;
    absl::string_view bytes;
    if (!Take(3 * (size_t{2} << (flags & 7)), &bytes)) return false;
    *colours = Colours(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return true;
  }

 private:
  absl::string_view rest_;
};

// Codes out of a chain of pieces, lowest bits first.
class CodeReader {
 public:
  explicit CodeReader(Bytes& bytes) : bytes_(bytes) {}
  bool Next(int bits, int* code) {
    while (count_ < bits) {
      if (at_ == piece_.size()) {
        at_ = 0;
        if (!bytes_.Piece(&piece_) || piece_.empty()) return false;
      }
      held_ |= static_cast<uint32_t>(static_cast<uint8_t>(piece_[at_++])) << count_;
      count_ += 8;
    }
    *code = static_cast<int>(held_ & ((1u << bits) - 1));
    held_ >>= bits;
    count_ -= bits;
    return true;
  }
  // Passes over what is left of the chain.
  bool Finish() {
    do {
      if (!bytes_.Piece(&piece_)) return false;
    } while (!piece_.empty());
    return true;
  }

 private:
  Bytes& bytes_;
  absl::string_view piece_;
  size_t at_ = 0;
  uint32_t held_ = 0;
  int count_ = 0;
};

// Each code but the first ones stands for another code's string and one more byte, so a string is written from its end.
class Lzw {
 public:
  explicit Lzw(int min_bits) : min_bits_(min_bits), clear_(1 << min_bits) {
    for (int i = 0; i < clear_; ++i) {
      const auto k = static_cast<size_t>(i);
      last_byte_[k] = first_byte_[k] = static_cast<uint8_t>(i);
      length_[k] = 1;
    }
    Clear();
  }

  bool Decode(CodeReader& codes, size_t wanted, std::vector<uint8_t>* out, StopRequest stop) {
    for (size_t steps = 0; out->size() < wanted; ++steps) {
      if (steps % 65536 == 65535 && stop()) return false;
      int code = 0;
      if (!codes.Next(bits_, &code) || code == clear_ + 1) return false;
      if (code == clear_) {
        Clear();
        continue;
      }
      if (code > next_ || (code == next_ && (previous_ < 0 || next_ == kCodes))) return false;
      if (previous_ >= 0 && next_ < kCodes) Add(code);
      if (next_ >= 1 << bits_ && bits_ < 12) ++bits_;
      Write(code, wanted, out);
      previous_ = code;
    }
    return true;
  }

 private:
  static constexpr int kCodes = 4096;

  void Clear() {
    bits_ = min_bits_ + 1;
    next_ = clear_ + 2;
    previous_ = -1;
  }
  // The string of the code before, and the first byte of this one's (its own first byte where it is the one being
  // added).
  void Add(int code) {
    const auto k = static_cast<size_t>(next_), before = static_cast<size_t>(previous_);
    prefix_[k] = static_cast<uint16_t>(previous_);
    first_byte_[k] = first_byte_[before];
    last_byte_[k] = first_byte_[static_cast<size_t>(code)];
    length_[k] = static_cast<uint16_t>(length_[before] + 1);
    ++next_;
  }
  void Write(int code, size_t wanted, std::vector<uint8_t>* out) const {
    const size_t begin = out->size(), length = length_[static_cast<size_t>(code)];
    out->resize(begin + length);
    auto k = static_cast<size_t>(code);
    for (size_t i = length; i-- > 0; k = prefix_[k]) (*out)[begin + i] = last_byte_[k];
    if (out->size() > wanted) out->resize(wanted);
  }

  const int min_bits_, clear_;
  int bits_ = 0, next_ = 0, previous_ = -1;
  std::array<uint16_t, kCodes> prefix_{}, length_{};
  std::array<uint8_t, kCodes> first_byte_{}, last_byte_{};
};

class Reader {
 public:
  Reader(absl::string_view bytes, int64_t max_frames, StopRequest stop)
      : bytes_(bytes), max_frames_(max_frames), stop_(stop) {}

  // The frames until the end, or until something is wrong.
  StatusOr<std::vector<Frame>> Read() {
    std::vector<Frame> frames;
    if (!ReadScreen()) return InvalidArgument("the GIF breaks off in its header");
    int64_t pixels = 0;
    while (max_frames_ < 0 || static_cast<int64_t>(frames.size()) < max_frames_) {
      int kind = 0;
      if (!bytes_.Byte(&kind) || (kind == 0x21 && !ReadExtension())) break;
      if (kind == 0x21) continue;
      if (kind != 0x2c) break;
      Frame frame;
      if (!ReadDescription(&frame)) break;
      if (frame.width == 0 || frame.height == 0) return InvalidArgument("the GIF has a frame without pixels");
      if ((pixels += frame.width * frame.height) > kMaxPixels) return InvalidArgument("the GIF has too many pixels");
      int min_bits = 0;
      if (!bytes_.Byte(&min_bits) || min_bits > 8)
        return InvalidArgument("the GIF has no codes of ", min_bits, " bits");
      const bool whole = ReadPixels(min_bits, &frame);
      if (stop_()) return StoppedDecoding();
      if (!whole) break;
      frames.push_back(std::move(frame));
    }
    if (frames.empty()) return InvalidArgument("the GIF has no frame that can be read");
    return frames;
  }

 private:
  bool ReadScreen() {
    absl::string_view ignored;
    int flags = 0;
    return bytes_.Take(6 + 4, &ignored) && bytes_.Byte(&flags) && bytes_.Take(2, &ignored) &&
           bytes_.ColourTable(flags, &colours_);
  }
  bool ReadExtension() {
    int kind = 0;
    absl::string_view piece;
    if (!bytes_.Byte(&kind)) return false;
    for (bool first = true; bytes_.Piece(&piece); first = false) {
      if (piece.empty()) return true;
      if (!first || kind != 0xf9 || piece.size() != 4 || transparent_ != kUnsaid) continue;
      transparent_ = (piece[0] & 1) != 0 ? static_cast<uint8_t>(piece[3]) : -1;
    }
    return false;
  }
  bool ReadDescription(Frame* f) {
    int flags = 0;
    if (!bytes_.Number(&f->left) || !bytes_.Number(&f->top) || !bytes_.Number(&f->width) ||
        !bytes_.Number(&f->height) || !bytes_.Byte(&flags)) {
      return false;
    }
    f->interlaced = (flags & 0x40) != 0;
    f->colours = colours_;
    f->transparent = std::exchange(transparent_, kUnsaid);
    return bytes_.ColourTable(flags, &f->colours);
  }
  bool ReadPixels(int min_bits, Frame* f) {
    CodeReader codes(bytes_);
    Lzw lzw(min_bits);
    return lzw.Decode(codes, static_cast<size_t>(f->width * f->height), &f->pixels, stop_) && codes.Finish();
  }

  Bytes bytes_;
  const int64_t max_frames_;
  const StopRequest stop_;
  Colours colours_;
  static constexpr int kUnsaid = -2;
  int transparent_ = kUnsaid;  // as the extensions before the next frame say
};

// Where the rows of an interlaced frame are, in the order of the file.
std::vector<int64_t> RowOrder(const Frame& f) {
  std::vector<int64_t> rows;
  constexpr int64_t kPasses[][2] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  if (!f.interlaced) {
    for (int64_t y = 0; y < f.height; ++y) rows.push_back(y);
    return rows;
  }
  for (const auto& [first, step] : kPasses) {
    for (int64_t y = first; y < f.height; y += step) rows.push_back(y);
  }
  return rows;
}

Status DrawRow(const Frame& f, const uint8_t* numbers, int64_t width, uint8_t* row) {
  for (int64_t x = 0; x < std::min(f.width, width - f.left); ++x) {
    const size_t number = numbers[x];
    if (numbers[x] == f.transparent) continue;
    if (3 * number >= f.colours.size()) {
      return InvalidArgument("a pixel of the GIF has colour ", number, " of ", f.colours.size() / 3);
    }
    std::copy_n(f.colours.data() + 3 * number, 3, row + 3 * (f.left + x));
  }
  return absl::OkStatus();
}

Status Draw(const Frame& f, const ImageSize& size, uint8_t* image) {
  if (f.colours.empty()) return InvalidArgument("a frame of the GIF has no table of colours");
  const std::vector<int64_t> rows = RowOrder(f);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t y = f.top + rows[i];
    if (y >= size.height) continue;
    MR_RETURN_IF_ERROR(
        DrawRow(f, f.pixels.data() + static_cast<int64_t>(i) * f.width, size.width, image + y * size.row()));
  }
  return absl::OkStatus();
}

}  // namespace

Status DecodeGif(absl::string_view bytes, int64_t max_frames, PixelMemory<uint8_t> memory, StopRequest stop) {
  MR_ASSIGN_OR_RETURN(const std::vector<Frame> frames, Reader(bytes, max_frames, stop).Read());
  ImageSize size{0, 0, 3};
  for (const Frame& f : frames) {
    size.width = std::max(size.width, f.width);
    size.height = std::max(size.height, f.height);
  }
  const auto count = static_cast<int64_t>(frames.size());
  if (size.width * size.height > kMaxPixels / count) {
    return InvalidArgument("a GIF of too many pixels: ", count, " frames of ", size.width, " x ", size.height);
  }
  MR_ASSIGN_OR_RETURN(uint8_t* const out, memory(count, size));
  std::fill_n(out, size.elements(), uint8_t{0});
  for (int64_t k = 0; k < count; ++k) {
    if (stop()) return StoppedDecoding();
    uint8_t* image = out + k * size.elements();
    if (k > 0) std::copy_n(image - size.elements(), size.elements(), image);
    MR_RETURN_IF_ERROR(Draw(frames[static_cast<size_t>(k)], size, image));
  }
  return absl::OkStatus();
}

}  // namespace millrace
