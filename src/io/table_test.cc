// SPDX-License-Identifier: Apache-2.0
#include "io/table.h"

#include <gtest/gtest.h>
#include <snappy.h>

#include <map>

#include "absl/strings/str_format.h"
#include "io/coding.h"
#include "io/crc32c.h"
#include "io/tensor_slice.h"
#include "simulation/fake_env.h"

namespace millrace {
namespace {

using Entries = std::map<std::string, std::string>;

void Put(Env& env, const std::string& path, absl::string_view bytes) {
  auto file = env.NewWritableFile(path);
  ASSERT_TRUE(file.ok() && (*file)->Append(bytes).ok() && (*file)->Close().ok());
}

void WriteTable(Env& env, const std::string& path, const Entries& entries) {
  auto file = env.NewWritableFile(path);
  ASSERT_TRUE(file.ok());
  TableWriter table(file->get());
  for (const auto& [k, v] : entries) ASSERT_TRUE(table.Add(k, v).ok());
  ASSERT_TRUE(table.Finish().ok());
  ASSERT_TRUE((*file)->Close().ok());
}

StatusOr<std::unique_ptr<TableReader>> OpenTable(Env& env, const std::string& path) {
  MR_ASSIGN_OR_RETURN(auto file, env.NewRandomAccessFile(path));
  return TableReader::Open(std::move(file));
}

StatusOr<Entries> ReadTable(Env& env, const std::string& path) {
  MR_ASSIGN_OR_RETURN(const auto table, OpenTable(env, path));
  Entries entries;
  MR_RETURN_IF_ERROR(table->ForEach([&](absl::string_view k, absl::string_view v) {
    entries.emplace(k, v);
    return absl::OkStatus();
  }));
  return entries;
}

TEST(Table, RoundTripOfManyBlocks) {
  FakeEnv env;
  Entries entries = {{"", "header"}, {"big", std::string(600000, 'b')}};
  for (int i = 0; i < 5000; ++i) entries[absl::StrFormat("key%06d", i * 7)] = std::string(200, static_cast<char>(i));
  WriteTable(env, "t", entries);
  auto back = ReadTable(env, "t");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, entries);
  auto table = OpenTable(env, "t");
  ASSERT_TRUE(table.ok());
  for (const auto& [k, v] : entries) {
    auto found = (*table)->Find(k);
    ASSERT_TRUE(found.ok() && found->has_value()) << k;
    ASSERT_EQ(**found, v);
  }
  for (const char* absent : {"a", "key000001", "zzz"}) {
    auto found = (*table)->Find(absent);
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->has_value()) << absent;
  }
}

TEST(Table, EmptyOne) {
  FakeEnv env;
  WriteTable(env, "t", {});
  auto back = ReadTable(env, "t");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->empty());
}

TEST(Table, KeysMustIncrease) {
  FakeEnv env;
  auto file = env.NewWritableFile("t");
  TableWriter table(file->get());
  ASSERT_TRUE(table.Add("b", "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(table.Add("b", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(table.Add("a", "")));
}

TEST(Table, DamageIsNeverData) {
  FakeEnv env;
  const Entries entries = {{"", "h"}, {"a", "1"}, {"ab", "2"}, {"b", ""}};
  WriteTable(env, "t", entries);
  const std::string good = *env.ReadFile("t");
  for (size_t n = 0; n < good.size(); ++n) {
    Put(env, "u", good.substr(0, n));
    EXPECT_TRUE(absl::IsDataLoss(ReadTable(env, "u").status())) << n;
  }
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    Put(env, "u", bad);
    auto back = ReadTable(env, "u");
    EXPECT_TRUE(back.ok() ? *back == entries : absl::IsDataLoss(back.status())) << bit << " " << back.status();
  }
}

// A table whose one data block is `block` as it stands, of type `type`.
std::string TableOfBlock(const std::string& block, char type) {
  std::string file;
  auto add = [&](std::string contents, char t, std::string* handle) {
    PutVarint(file.size(), handle);
    PutVarint(contents.size(), handle);
    contents.push_back(t);
    PutFixed32(MaskCrc(Crc32c(contents)), &contents);
    file += contents;
  };
  std::string data, meta, index, footer;
  add(block, type, &data);
  const std::string none("\0\0\0\0\1\0\0\0", 8);
  add(none, 0, &meta);
  std::string entry;
  PutVarint(0, &entry);
  PutVarint(1, &entry);
  PutVarint(data.size(), &entry);
  add(entry + "z" + data + none, 0, &index);
  footer = meta + index;
  footer.resize(40, '\0');
  PutFixed64(0xdb4775248b80fb57u, &footer);
  return file + footer;
}

TEST(Table, ReadsSnappyAndRefusesBombs) {
  FakeEnv env;
  std::string plain("\0\1\3kabc", 7);
  plain += std::string("\0\0\0\0\1\0\0\0", 8);
  std::string packed;
  snappy::Compress(plain.data(), plain.size(), &packed);
  Put(env, "t", TableOfBlock(packed, 1));
  auto back = ReadTable(env, "t");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, (Entries{{"k", "abc"}}));
  Put(env, "t", TableOfBlock(plain, 2));
  EXPECT_TRUE(absl::IsDataLoss(ReadTable(env, "t").status()));
  std::string bomb;
  PutVarint(uint64_t{1} << 31, &bomb);
  Put(env, "t", TableOfBlock(bomb + "\x01xx", 1));
  EXPECT_TRUE(absl::IsDataLoss(ReadTable(env, "t").status()));
}

TEST(Table, RefusesBrokenBlocks) {
  FakeEnv env;
  const std::string restarts("\0\0\0\0\1\0\0\0", 8);
  for (const std::string& block :
       {std::string(), std::string("\0\0\0\0\0\0\0\0", 8), std::string("\xff\xff\xff\xff", 4),
        std::string("\0\1\3kabcd", 8) + restarts, std::string("\1\1\0k", 4) + restarts,
        std::string("\0\1\0b\0\1\0a", 8) + restarts,
        std::string("\0\1\x7f"
                    "b",
                    4) +
            restarts,
        std::string("\0\2\0zz", 5) + restarts}) {
    Put(env, "t", TableOfBlock(block, 0));
    EXPECT_TRUE(absl::IsDataLoss(ReadTable(env, "t").status())) << block.size();
  }
}

TEST(SliceKey, Bytes) {
  auto key = [](absl::string_view name, absl::string_view slice) {
    std::string hex;
    for (char c : SliceKey(name, *TensorSlice::Parse(slice)))
      absl::StrAppendFormat(&hex, "%02x", static_cast<unsigned char>(c));
    return hex;
  };
  EXPECT_EQ(key("a", ""), "0061000100");
  EXPECT_EQ(key("DW", "-:-:-:-"), "00445700010104807f807f807f807f");
  EXPECT_EQ(key("v", "0,10:-"),
            "0076000101"
            "02808a807f");
  EXPECT_EQ(key("v", "64,8192"),
            "0076000101"
            "01c040e02000");
}

TEST(TensorSlice, Specs) {
  auto spec = ParseShapeAndSlice("4 5 1,2:-");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->full.ToString(), "[4,5]");
  EXPECT_EQ(spec->part.ToString(), "[2,5]");
  EXPECT_EQ(spec->slice.ToString(), "1,2:-");
  for (const char* bad : {"junk", "4 5", "4 5 1,2", "4 -5 -:-", "4 5 1,0:-", "4 5 -1,2:-", "4 5 1:-", "x 5 -:-",
                          "4611686018427387904 4611686018427387904 -:-"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseShapeAndSlice(bad).status())) << bad;
  }
  EXPECT_TRUE(absl::IsInternal(ParseShapeAndSlice("4 3,2").status()));
}

}  // namespace
}  // namespace millrace
