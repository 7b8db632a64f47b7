// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

StatusOr<std::string> Text(absl::string_view json) {
  JsonReader reader(json);
  bool quoted = false;
  std::string text;
  MR_RETURN_IF_ERROR(reader.Scalar(&quoted, &text));
  if (!quoted || reader.Peek() != '\0') return reader.Fail("no string");
  return text;
}

TEST(Json, StringsComeBack) {
  for (const std::string text : {"", "plain", "a \"quote\" and a \\", "line\nend\x01", "ch\u00e9ck", "\U0001f600"}) {
    EXPECT_EQ(Text(JsonQuoted(text)).value_or("?"), text);
  }
}

TEST(Json, EscapesAreUtf8) {
  EXPECT_EQ(Text(R"("\u00e9\t\/")").value_or("?"), "\u00e9\t/");
  EXPECT_EQ(Text(R"("\ud83d\ude00")").value_or("?"), "\U0001f600");
  for (const char* const damaged : {R"("\ud83d")", R"("\ude00")", R"("\u12")", R"("\x")", R"("open)", R"("\)", ""}) {
    EXPECT_EQ(Text(damaged).status().code(), absl::StatusCode::kInvalidArgument) << damaged;
  }
}

TEST(Json, ObjectsAndArrays) {
  JsonReader reader(R"( {"a": [1, -2.5e3,], b: null} )");
  std::vector<std::string> numbers;
  const Status s = reader.Object([&](const std::string& key) -> Status {
    if (key == "b") return reader.TakeNull() ? absl::OkStatus() : reader.Fail("expected null");
    return reader.Array([&] {
      bool quoted = false;
      return reader.Scalar(&quoted, &numbers.emplace_back());
    });
  });
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(numbers, (std::vector<std::string>{"1", "-2.5e3"}));
  EXPECT_EQ(reader.Peek(), '\0');
}

TEST(Json, DamagedObjectsTellWhere) {
  for (const char* const damaged :
       {"", "[", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}", "{:1}"}) {
    JsonReader reader(damaged);
    const Status s = reader.Object([&](const std::string&) {
      bool quoted = false;
      std::string value;
      return reader.Scalar(&quoted, &value);
    });
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << damaged;
    EXPECT_NE(s.message().find("at offset"), absl::string_view::npos) << s;
  }
}

}  // namespace
}  // namespace millrace
