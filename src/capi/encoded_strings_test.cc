// SPDX-License-Identifier: Apache-2.0
// The conversion alone, on memory of the exact size: worth running with an address sanitizer.
#include "capi/encoded_strings.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace millrace::capi {
namespace {

RefPtr<EncodedStrings> Holding(const std::string& bytes, const Shape& shape) {
  RefPtr<EncodedStrings> e = MakeRef<EncodedStrings>();
  void* data = std::malloc(bytes.size());
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  e->bytes = WrapBuffer(data, bytes.size(), [](void* p, size_t, void*) { std::free(p); }, nullptr, false);
  e->size = bytes.size();
  e->shape = shape;
  return e;
}

// What reads each character, so that one outside is seen.
size_t Total(const Tensor& t) {
  size_t total = 0;
  for (const TString& s : t.flat<TString>()) {
    for (char c : s.view()) total += static_cast<unsigned char>(c);
  }
  return total;
}

TEST(EncodedStringsTest, FuzzDecode) {
  int good = 0;
  for (unsigned seed = 1; seed <= 20000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); };
    const size_t count = below(5);
    std::string bytes(count * 8, '\0');
    for (size_t i = 0; i < count; ++i) {
      const uint64_t offset = bytes.size() - count * 8;
      std::memcpy(&bytes[i * 8], &offset, 8);
      const size_t size = below(300), at = bytes.size();
      bytes.resize(at + EncodedSize(size));
      EncodeString(std::string(size, 'x'), &bytes[at]);
    }
    for (size_t i = below(3); i > 0 && !bytes.empty(); --i) bytes[below(bytes.size())] = static_cast<char>(below(256));
    if (below(3) == 0) bytes.resize(below(bytes.size() + 1));
    const auto shape = Shape::Make({static_cast<int64_t>(count + (below(6) == 0 ? below(1000) : 0))});
    RefPtr<EncodedStrings> encoded = Holding(bytes, *shape);
    const StatusOr<Tensor> tensor = DecodeStrings(*encoded);
    encoded.reset();  // the tensor holds what it shows
    if (!tensor.ok()) {
      EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument) << "seed " << seed;
      continue;
    }
    ++good;
    const size_t total = Total(*tensor);
    const auto again = EncodeStrings(*tensor);
    ASSERT_TRUE(again.ok());
    const auto same = DecodeStrings(**again);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(Total(*same), total) << "seed " << seed;
  }
  EXPECT_GT(good, 1000);
}

TEST(EncodedStringsTest, LengthsAtTheLimits) {
  absl::string_view s;
  const std::string most = std::string(9, '\xff') + "\x01", more = std::string(9, '\xff') + "\x02";
  EXPECT_FALSE(DecodeString(most, &s).ok()) << "a length of 2^64 - 1";
  EXPECT_FALSE(DecodeString(more, &s).ok());
  EXPECT_FALSE(DecodeString(std::string(11, '\x80'), &s).ok());
  EXPECT_FALSE(DecodeString({}, &s).ok());
  const auto huge = Shape::Make({std::numeric_limits<int64_t>::max() / 32});
  ASSERT_TRUE(huge.ok());
  EXPECT_FALSE(DecodeStrings(*Holding("12345678", *huge)).ok()) << "nothing is made of a shape alone";
  EXPECT_EQ(EncodedSize(127), 128u);
  EXPECT_EQ(EncodedSize(128), 130u);
}

TEST(EncodedStringsTest, ChecksTStrings) {
  TString strings[2];
  const auto check = [&] { return CheckStrings(absl::MakeSpan(strings), strings, sizeof(strings)); };
  const auto set = [&](uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t raw[] = {a, b, c};
    std::memcpy(static_cast<void*>(&strings[1]), raw, sizeof(raw));
  };
  EXPECT_TRUE(check().ok());
  strings[0] = std::string(5000, 'l');
  EXPECT_TRUE(check().ok());
  const auto valid = reinterpret_cast<uintptr_t>(strings[0].data());
  struct {
    uint64_t a, b, c;
    bool ok;
  } const cases[] = {
      {22 << 2, 0, 0, true},
      {23 << 2, 0, 0, false},
      {100 << 2 | 1, 100, valid, true},
      {100 << 2 | 1, 99, valid, false},
      {100 << 2 | 1, 100, 8, false},
      {100 << 2 | 3, valid, 0, true},
      {100 << 2 | 3, 0, 0, false},
      {uint64_t{1} << 60 | 3, valid, 0, false},
      {uint64_t{24} << 32 | (0 << 2) | 2, 0, 0, true},
      {uint64_t{16} << 32 | (8 << 2) | 2, 0, 0, true},
      {uint64_t{16} << 32 | (9 << 2) | 2, 0, 0, false},
      {uint64_t{0xffffffff} << 32 | (9 << 2) | 2, 0, 0, false},
  };
  for (const auto& c : cases) {
    set(c.a, c.b, c.c);
    EXPECT_EQ(check().ok(), c.ok) << &c - cases;
  }
  set(0, 0, 0);
}

TEST(EncodedStringsTest, ChecksEachOfManyThatShareAPage) {
  const std::string text(100, 't');
  std::vector<TString> strings(1000);
  for (TString& s : strings) s.AssignView(text);
  const auto check = [&] {
    return CheckStrings(absl::MakeSpan(strings), strings.data(), strings.size() * sizeof(TString));
  };
  EXPECT_TRUE(check().ok());
  for (const size_t bad : {size_t{0}, size_t{500}, strings.size() - 1}) {
    strings[bad].AssignView(absl::string_view(reinterpret_cast<const char*>(8), 4));
    EXPECT_FALSE(check().ok()) << bad;
    strings[bad].AssignView(text);
  }
}

TEST(EncodedStringsTest, ChecksEachOfManyPages) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), count = 1000;
  void* const memory = mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const begin = static_cast<char*>(memory);
  std::vector<TString> strings(count);
  for (size_t i = 0; i < count; ++i) strings[i].AssignView(absl::string_view(begin + i * 617 % count * page + 7, 40));
  const auto check = [&] {
    return CheckStrings(absl::MakeSpan(strings), strings.data(), strings.size() * sizeof(TString));
  };
  EXPECT_TRUE(check().ok());
  for (const size_t bad : {size_t{0}, size_t{255}, size_t{256}, size_t{600}, count - 1}) {
    char* const hole = begin + bad * 617 % count * page;
    ASSERT_EQ(mprotect(hole, page, PROT_NONE), 0);
    EXPECT_FALSE(check().ok()) << bad;
    ASSERT_EQ(mprotect(hole, page, PROT_READ), 0);
  }
  EXPECT_TRUE(check().ok());
  ASSERT_EQ(munmap(memory, count * page), 0);
  for (TString& s : strings) s.Clear();
}

TEST(EncodedStringsTest, ChecksLongStringsForHoles) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), size = 32 * page;
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const begin = static_cast<char*>(memory);
  TString s;
  s.AssignView(absl::string_view(begin + 100, size - 200));
  const auto check = [&] { return CheckStrings(absl::MakeSpan(&s, 1), &s, sizeof(s)).ok(); };
  EXPECT_TRUE(check());
  ASSERT_EQ(mprotect(begin + 7 * page, page, PROT_NONE), 0);
  EXPECT_FALSE(check());
  ASSERT_EQ(mprotect(begin + 7 * page, page, PROT_READ), 0);
  EXPECT_TRUE(check());
  ASSERT_EQ(munmap(begin + 31 * page, page), 0);
  EXPECT_FALSE(check());
  ASSERT_EQ(munmap(begin, 31 * page), 0);
  s.Clear();
}

TEST(EncodedStringsTest, RefusesTheEndOfTheAddresses) {
  TString s;
  s.AssignView(absl::string_view(reinterpret_cast<const char*>(UINTPTR_MAX - 100), 100));
  EXPECT_FALSE(CheckStrings(absl::MakeSpan(&s, 1), &s, sizeof(s)).ok());
  s.Clear();
}

// As a daemon does, and opens files of its own afterwards.
TEST(EncodedStringsTest, WritesIntoNoFileOfTheProgram) {
  const std::string text(100, 'x');
  TString s;
  s.AssignView(text);
  const auto check = [&] { return CheckStrings(absl::MakeSpan(&s, 1), &s, sizeof(s)).ok(); };
  EXPECT_EXIT(
      {
        if (!check()) _exit(1);
        for (int file = 3; file < 256; ++file) close(file);
        std::vector<int> files;
        for (int i = 0; i < 20; ++i) files.push_back(memfd_create("of the program", 0));
        if (!check()) _exit(2);
        for (const int file : files) {
          if (lseek(file, 0, SEEK_END) != 0) _exit(3);
        }
        s.AssignView(absl::string_view(reinterpret_cast<const char*>(4096), 100));
        _exit(check() ? 4 : 0);
      },
      ::testing::ExitedWithCode(0), "");
  s.Clear();
}

}  // namespace
}  // namespace millrace::capi
