// SPDX-License-Identifier: Apache-2.0
#include "io/record.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "io/crc32c.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

TEST(Crc32c, Vectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(ExtendCrc32c(Crc32c("1234"), "56789"), 0xe3069283u);
  EXPECT_EQ(MaskCrc(Crc32c("\x1a\x11"
                           "CRC test, one two")),
            0x5794d08au);
  EXPECT_EQ(UnmaskCrc(MaskCrc(0x12345678u)), 0x12345678u);
}

TEST(Record, Bytes) {
  std::string out;
  AppendRecord("", &out);
  AppendRecord("abc", &out);
  EXPECT_EQ(
      absl::BytesToHexString(out),
      "0000000000000000"
      "29039807"
      "d8ea82a2"
      "0300000000000000"
      "b099490e"
      "616263"
      "6e57f121");
}

class RecordFile : public testing::TestWithParam<Compression> {};

TEST_P(RecordFile, RoundTrip) {
  FakeEnv env;
  std::vector<std::string> records = {"", "a", std::string(100000, 'x'), std::string(3, '\0')};
  auto writer = RecordWriter::Open(env, "f", GetParam());
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const std::string& r : records) ASSERT_TRUE((*writer)->Write(r).ok());
  ASSERT_TRUE((*writer)->Close().ok());

  auto reader = RecordReader::Open(env, "f", GetParam());
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::string payload;
  uint64_t third = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (i == 2) third = (*reader)->offset();
    auto more = (*reader)->Read(&payload);
    ASSERT_TRUE(more.ok() && *more) << more.status();
    EXPECT_EQ(payload, records[i]);
  }
  auto more = (*reader)->Read(&payload);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_FALSE(*more);

  auto later = RecordReader::Open(env, "f", GetParam(), third);
  ASSERT_TRUE(later.ok()) << later.status();
  ASSERT_TRUE(*(*later)->Read(&payload));
  EXPECT_EQ(payload, records[2]);
}

// However the file is cut or changed, what is read is a prefix of what was written.
TEST_P(RecordFile, DamageIsNeverData) {
  FakeEnv env;
  const std::vector<std::string> records = {"first", "second record", ""};
  {
    auto writer = RecordWriter::Open(env, "f", GetParam());
    ASSERT_TRUE(writer.ok());
    for (const std::string& r : records) ASSERT_TRUE((*writer)->Write(r).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  const std::string good = *env.ReadFile("f");
  auto check = [&](const std::string& bytes) {
    {
      auto file = env.NewWritableFile("g");
      ASSERT_TRUE(file.ok() && (*file)->Append(bytes).ok() && (*file)->Close().ok());
    }
    auto reader = RecordReader::Open(env, "g", GetParam());
    ASSERT_TRUE(reader.ok());
    std::string payload;
    for (size_t i = 0;; ++i) {
      auto more = (*reader)->Read(&payload);
      if (!more.ok() || !*more) break;
      ASSERT_LT(i, records.size());
      ASSERT_EQ(payload, records[i]);
    }
  };
  for (size_t n = 0; n < good.size(); ++n) check(good.substr(0, n));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    check(bad);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordFile, testing::Values(Compression::kNone, Compression::kZlib, Compression::kGzip));

}  // namespace
}  // namespace millrace
