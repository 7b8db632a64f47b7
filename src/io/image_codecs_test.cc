// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "absl/strings/escaping.h"
#include "io/bmp.h"
#include "io/coding.h"
#include "io/gif.h"
#include "io/jpeg.h"
#include "io/png.h"

namespace millrace {
namespace {

// Takes what a decoder makes.
template <typename T>
struct Picture {
  int64_t frames = 0;
  ImageSize size;
  std::vector<T> pixels;

  auto Memory() {
    return [this](int64_t n, const ImageSize& s) -> StatusOr<T*> {
      frames = n;
      size = s;
      pixels.assign(static_cast<size_t>(n * s.elements()), T{77});
      return pixels.data();
    };
  }
};
using Bytes = Picture<uint8_t>;
using Words = Picture<uint16_t>;
const auto kNever = [] { return false; };
const auto kAtOnce = [] { return true; };

std::vector<uint8_t> Waves(const ImageSize& size) {
  std::vector<uint8_t> v(static_cast<size_t>(size.elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] =
        static_cast<uint8_t>(128 + 100 * std::sin(0.05 * static_cast<double>(i / static_cast<size_t>(size.channels))));
  }
  return v;
}

std::string Jpeg(const ImageSize& size, JpegWriting how = {}) {
  return *EncodeJpeg(Waves(size).data(), size, how, kNever);
}
// The file says that its image is of another size.
std::string WithJpegSize(std::string file, int height, int width) {
  size_t at = file.find("\xff\xc0") + 5;
  for (const int v : {height >> 8, height, width >> 8, width}) file[at++] = static_cast<char>(v);
  return file;
}

TEST(Jpeg, ReadsWhatItWrites) {
  for (const int64_t channels : {1, 3}) {
    const ImageSize size{21, 34, channels};
    for (const bool progressive : {false, true}) {
      JpegWriting how;
      how.progressive = progressive;
      how.quality = 98;
      Bytes image;
      const Status s = DecodeJpeg(Jpeg(size, how), {}, image.Memory(), kNever);
      ASSERT_TRUE(s.ok()) << s;
      ASSERT_EQ(image.pixels.size(), static_cast<size_t>(size.elements()));
      const std::vector<uint8_t> want = Waves(size);
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(image.pixels[i], want[i], 12) << i;
    }
    const auto said = SizeOfJpeg(Jpeg(size));
    ASSERT_TRUE(said.ok()) << said.status();
    EXPECT_EQ(said->height, 21);
    EXPECT_EQ(said->width, 34);
    EXPECT_EQ(said->channels, channels);
  }
}

TEST(Jpeg, WindowsAreParts) {
  const std::string file = Jpeg({40, 50, 3});
  JpegReading how;
  how.smooth_colours = false;
  Bytes whole, part;
  ASSERT_TRUE(DecodeJpeg(file, how, whole.Memory(), kNever).ok());
  how.window = ImageWindow{7, 11, 20, 30};
  const Status s = DecodeJpeg(file, how, part.Memory(), kNever);
  ASSERT_TRUE(s.ok()) << s;
  for (int64_t y = 0; y < 20; ++y) {
    const auto from = whole.pixels.begin() + ((y + 7) * 50 + 11) * 3;
    EXPECT_TRUE(std::equal(from, from + 90, part.pixels.begin() + y * 90)) << y;
  }
  for (const ImageWindow& w : {ImageWindow{-1, 0, 2, 2}, ImageWindow{0, 0, 41, 2}, ImageWindow{0, 0, 0, 2},
                               ImageWindow{39, 49, 2, 1}, ImageWindow{1 << 30, 1 << 30, 1 << 30, 1 << 30}}) {
    how.window = w;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeJpeg(file, how, part.Memory(), kNever)));
  }
}

TEST(Jpeg, BrokenFilesEnd) {
  for (const bool progressive : {false, true}) {
    JpegWriting writing;
    writing.progressive = progressive;
    const std::string file = Jpeg({24, 40, 3}, writing);
    for (const bool recover : {false, true}) {
      JpegReading how;
      how.recover_truncated = recover;
      for (size_t n = 0; n < file.size(); ++n) {
        Bytes image;
        const Status s = DecodeJpeg(absl::string_view(file).substr(0, n), how, image.Memory(), kNever);
        EXPECT_TRUE(s.ok() ? recover || n + 2 >= file.size() : absl::IsInvalidArgument(s)) << n << " " << s;
      }
    }
  }
  JpegReading some;
  some.acceptable_fraction = 0.25;
  const std::string file = Jpeg({64, 64, 1});
  Bytes image;
  ASSERT_TRUE(DecodeJpeg(file.substr(0, file.size() * 3 / 4), some, image.Memory(), kNever).ok());
  EXPECT_EQ(image.pixels.back(), 0);
}

TEST(Jpeg, SizesAreBoundedBeforeMemoryIs) {
  bool asked = false;
  const auto memory = [&](int64_t, const ImageSize&) -> StatusOr<uint8_t*> {
    asked = true;
    return ResourceExhausted("no");
  };
  const std::string file = Jpeg({8, 8, 3});
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeJpeg(WithJpegSize(file, 65500, 65500), {}, memory, kNever)));
  EXPECT_FALSE(asked);
  EXPECT_TRUE(absl::IsResourceExhausted(DecodeJpeg(WithJpegSize(file, 20000, 20000), {}, memory, kNever)));
  EXPECT_TRUE(absl::IsInternal(EncodeJpeg(nullptr, {0, 4, 3}, {}, kNever).status()));
  EXPECT_TRUE(absl::IsInternal(EncodeJpeg(nullptr, {1, 70000, 3}, {}, kNever).status()));
}

TEST(Jpeg, StopsOnRequest) {
  for (const bool progressive : {false, true}) {
    JpegWriting how;
    how.progressive = progressive;
    const ImageSize size{64, 64, 3};
    Bytes image;
    EXPECT_TRUE(absl::IsCancelled(DecodeJpeg(Jpeg(size, how), {}, image.Memory(), kAtOnce)));
    EXPECT_TRUE(absl::IsCancelled(EncodeJpeg(Waves(size).data(), size, how, kAtOnce).status()));
  }
}

TEST(Png, ReadsWhatItWrites) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const ImageSize size{9, 14, channels};
    const std::vector<uint8_t> pixels = Waves(size);
    const auto file = EncodePng(pixels.data(), size, -1, kNever);
    ASSERT_TRUE(file.ok()) << file.status();
    Bytes image;
    Words wide;
    ASSERT_TRUE(DecodePng(*file, 0, image.Memory(), kNever).ok());
    EXPECT_EQ(image.pixels, pixels);
    ASSERT_TRUE(DecodePng(*file, 0, wide.Memory(), kNever).ok());
    EXPECT_EQ(wide.pixels[5], 257 * pixels[5]);
    for (int64_t wanted = 1; wanted <= 4; ++wanted) {
      ASSERT_TRUE(DecodePng(*file, wanted, image.Memory(), kNever).ok());
      EXPECT_EQ(image.size.channels, wanted);
    }
    std::vector<uint16_t> words(pixels.begin(), pixels.end());
    for (uint16_t& w : words) w = static_cast<uint16_t>(w * 255 + 1);
    const auto wide_file = EncodePng(words.data(), size, 9, kNever);
    ASSERT_TRUE(wide_file.ok() && DecodePng(*wide_file, 0, wide.Memory(), kNever).ok());
    EXPECT_EQ(wide.pixels, words);
    for (size_t n = 0; n + 1 < file->size(); ++n) {
      EXPECT_TRUE(absl::IsInvalidArgument(DecodePng(file->substr(0, n), 0, image.Memory(), kNever))) << n;
    }
  }
}

std::string PngOfSize(uint32_t width, uint32_t height) {
  std::string header("IHDR\0\0\0\0\0\0\0\0\x08\x06\0\0\0", 17);
  for (size_t i = 0; i < 4; ++i) {
    header[4 + i] = static_cast<char>(width >> (24 - 8 * i));
    header[8 + i] = static_cast<char>(height >> (24 - 8 * i));
  }
  const auto sum = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(header.data()), 17));
  std::string file = absl::StrCat("\x89PNG\r\n\x1a\n", absl::string_view("\0\0\0\x0d", 4), header);
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<char>(sum >> shift));
  return absl::StrCat(file, absl::string_view("\0\0\0\0IDAT\x35\xaf\x06\x1e", 12));
}

TEST(Png, SizesAreBoundedBeforeMemoryIs) {
  const auto memory = [](int64_t, const ImageSize&) -> StatusOr<uint8_t*> { return ResourceExhausted("no"); };
  EXPECT_TRUE(absl::IsResourceExhausted(DecodePng(PngOfSize(20000, 20000), 0, memory, kNever)));
  for (const auto& [width, height] :
       std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {1u << 30, 1}, {60000, 60000}, {~0u, ~0u}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodePng(PngOfSize(width, height), 0, memory, kNever)));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(EncodePng(Waves({2, 2, 5}).data(), {2, 2, 5}, -1, kNever).status()));
  EXPECT_TRUE(absl::IsInternal(EncodePng(Waves({0, 2, 3}).data(), {0, 2, 3}, -1, kNever).status()));
  const ImageSize size{2, 2, 3};
  Bytes image;
  EXPECT_TRUE(absl::IsCancelled(EncodePng(Waves(size).data(), size, -1, kAtOnce).status()));
  EXPECT_TRUE(
      absl::IsCancelled(DecodePng(*EncodePng(Waves(size).data(), size, -1, kNever), 0, image.Memory(), kAtOnce)));
}

// Two frames of 4 x 3 with the colours red, green, blue and grey; in the second one grey is not drawn.
const std::string kGif = absl::HexStringToBytes(
    "47494638396104000300810000ff000000ff000000ff09090921ff0b4e45545343415045322e30030100000021f90401000003002c00000000"
    "0400"
    "030000080d000104102070200001080304040021f90401000003002c000000000400030081ff000000ff000000ff090909080c000708140800"
    "c0"
    "c001010202003b");

TEST(Gif, FramesAreDrawnOverEachOther) {
  Bytes image;
  const Status s = DecodeGif(kGif, -1, image.Memory(), kNever);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(image.frames, 2);
  const auto colour = [&](size_t frame, size_t pixel) {
    for (size_t k = 0; k < 3; ++k) {
      if (image.pixels[36 * frame + 3 * pixel + k] == 255) return static_cast<int>(k);
    }
    return 3;
  };
  const int first[] = {0, 1, 2, 0, 1, 1, 2, 0, 2, 2, 2, 1}, second[] = {3, 3, 3, 3, 3, 0, 0, 3, 3, 3, 3, 1};
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(colour(0, i), first[i]) << i;
    EXPECT_EQ(colour(1, i), second[i] == 3 ? first[i] : second[i]) << i;
  }
}

TEST(Gif, BrokenFilesGiveWhatTheyHave) {
  for (size_t n = 0; n < kGif.size(); ++n) {
    Bytes image;
    const Status s = DecodeGif(kGif.substr(0, n), -1, image.Memory(), kNever);
    EXPECT_TRUE(s.ok() ? image.frames == (n < 123 ? 1 : 2) : absl::IsInvalidArgument(s)) << n << " " << s;
  }
  std::string wide = kGif;  // a frame of 65535 x 65535
  const size_t frame = wide.find(',') + 5;
  for (size_t i = 0; i < 4; ++i) wide[frame + i] = '\xff';
  Bytes image;
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeGif(wide, -1, image.Memory(), kNever)));
  EXPECT_TRUE(absl::IsCancelled(DecodeGif(kGif, -1, image.Memory(), kAtOnce)));
}

std::string Bmp(int32_t width, int32_t height, int bits, const std::string& pixels) {
  std::string file("BM", 2);
  for (const int64_t v : {int64_t{0}, int64_t{0}, int64_t{54}, int64_t{40}, int64_t{width}, int64_t{height}}) {
    PutFixed32(static_cast<uint32_t>(v), &file);
  }
  PutFixed32(static_cast<uint32_t>(1 | bits << 16), &file);
  return absl::StrCat(file, std::string(24, '\0'), pixels);
}

TEST(Bmp, RowsAreTurned) {
  Bytes image;
  const std::string pixels("\x01\x02\x03\x04\x05\x06\0\0\x11\x12\x13\x14\x15\x16\0\0", 16);
  ASSERT_TRUE(DecodeBmp(Bmp(2, 2, 24, pixels), 0, image.Memory(), kNever).ok());
  EXPECT_EQ(image.pixels, std::vector<uint8_t>({0x13, 0x12, 0x11, 0x16, 0x15, 0x14, 3, 2, 1, 6, 5, 4}));
  ASSERT_TRUE(DecodeBmp(Bmp(2, -2, 24, pixels), 4, image.Memory(), kNever).ok());
  EXPECT_EQ(
      image.pixels, std::vector<uint8_t>({3, 2, 1, 255, 6, 5, 4, 255, 0x13, 0x12, 0x11, 255, 0x16, 0x15, 0x14, 255}));
  for (const std::string& bad :
       {Bmp(0, 2, 24, pixels), Bmp(2, 0, 24, pixels), Bmp(2, 2, 16, pixels), Bmp(2, INT32_MIN, 24, pixels),
        Bmp(INT32_MAX, INT32_MAX, 32, pixels), Bmp(3, 2, 24, pixels), std::string("BM")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeBmp(bad, 0, image.Memory(), kNever)));
  }
}

TEST(ImageFormat, IsToldByTheFirstBytes) {
  EXPECT_EQ(FormatOfImage(Jpeg({1, 1, 1})), ImageFormat::kJpeg);
  EXPECT_EQ(FormatOfImage(PngOfSize(1, 1)), ImageFormat::kPng);
  EXPECT_EQ(FormatOfImage(kGif), ImageFormat::kGif);
  EXPECT_EQ(FormatOfImage("BM"), ImageFormat::kBmp);
  EXPECT_EQ(FormatOfImage(""), ImageFormat::kUnknown);
}

// Bytes changed, left out and repeated. Run under the sanitizers this finds what reads past an end.
std::string Damaged(std::string file, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  for (size_t i = 0; i < 1 + seed % 4; ++i) file[below(file.size())] = static_cast<char>(below(256));
  if (seed % 3 == 0) file.resize(1 + below(file.size()));
  if (seed % 5 == 0) file.insert(below(file.size()), file.substr(below(file.size()), below(20)));
  return file;
}

TEST(ImageFiles, DamagedOnesEnd) {
  JpegWriting progressive;
  progressive.progressive = true;
  const ImageSize size{12, 17, 3};
  const std::string files[] = {Jpeg(size), Jpeg(size, progressive), *EncodePng(Waves(size).data(), size, -1, kNever),
                               kGif, Bmp(2, 2, 24, std::string(16, 'x'))};
  for (uint32_t seed = 0; seed < 600; ++seed) {
    for (const std::string& file : files) {
      const std::string bytes = Damaged(file, seed);
      Bytes image;
      Words wide;
      const auto memory = [&](int64_t n, const ImageSize& s) -> StatusOr<uint8_t*> {
        if (n * s.elements() > 1 << 20) return ResourceExhausted("large");
        return image.Memory()(n, s);
      };
      const auto wide_memory = [&](int64_t n, const ImageSize& s) -> StatusOr<uint16_t*> {
        if (n * s.elements() > 1 << 20) return ResourceExhausted("large");
        return wide.Memory()(n, s);
      };
      JpegReading how;
      how.recover_truncated = seed % 2 == 0;
      if (seed % 7 == 0) how.window = ImageWindow{1, 2, 3, 4};
      for (const Status& s :
           {DecodeJpeg(bytes, how, memory, kNever), DecodePng(bytes, seed % 5, memory, kNever),
            DecodePng(bytes, seed % 5, wide_memory, kNever), DecodeGif(bytes, -1, memory, kNever),
            DecodeBmp(bytes, seed % 2 == 0 ? 0 : 4, memory, kNever)}) {
        EXPECT_TRUE(s.ok() || absl::IsInvalidArgument(s) || absl::IsResourceExhausted(s)) << s;
      }
    }
  }
}

}  // namespace
}  // namespace millrace
