// SPDX-License-Identifier: Apache-2.0
#include "op/attr.h"

#include <gtest/gtest.h>

#include "op/example.h"

namespace millrace {
namespace {

AttrValue RoundTrip(const AttrValue& v) {
  auto proto = AttrToProto(v);
  EXPECT_TRUE(proto.ok()) << proto.status();
  auto back = AttrFromProto(*proto);
  EXPECT_TRUE(back.ok()) << back.status();
  return back.ok() ? *back : AttrValue();
}

TEST(AttrTest, RoundTripsEveryKind) {
  const FuncAttr f{"f", {{"T", AttrValue(DType::kInt8)}, {"g", AttrValue(FuncAttr{"h", {}})}}};
  const std::vector<AttrValue> values = {
      AttrValue("text"),
      AttrValue(-5),
      AttrValue(2.5f),
      AttrValue(true),
      AttrValue(DType::kVariant),
      AttrValue(PartialShape()),
      AttrValue(PartialShape::Of({2, -1})),
      AttrValue(Tensor::Vector<int64_t>({1, 2})),
      AttrValue(Tensor::Scalar<TString>(TString("s"))),
      AttrValue(f),
      AttrValue(PlaceholderAttr{"T"}),
      AttrValue(std::vector<std::string>{"a", ""}),
      AttrValue(std::vector<int64_t>{1, -1}),
      AttrValue(std::vector<float>{1, 2}),
      AttrValue(std::vector<bool>{true, false}),
      AttrValue(std::vector<DType>{DType::kHalf}),
      AttrValue(std::vector<PartialShape>{PartialShape::Scalar()}),
      AttrValue(std::vector<FuncAttr>{f}),
      AttrValue(EmptyListAttr())};
  for (const AttrValue& v : values) EXPECT_TRUE(RoundTrip(v).Equals(v)) << v.ToString();
  EXPECT_TRUE(AttrValue(EmptyListAttr()).Equals(AttrValue(std::vector<int64_t>())));
  EXPECT_FALSE(AttrValue(std::vector<float>()).Equals(AttrValue(std::vector<int64_t>())));
}

TEST(AttrTest, RefusesBadProtos) {
  wire::AttrValue none;
  EXPECT_FALSE(AttrFromProto(none).ok());
  for (int32_t number : {0, 24, 101, 119, 9999, -1}) {
    wire::AttrValue type;
    type.kind = wire::AttrValue::Kind::kType;
    type.type = number;
    EXPECT_EQ(AttrFromProto(type).status().code(), absl::StatusCode::kInvalidArgument) << number;
  }
  wire::AttrValue two;
  two.kind = wire::AttrValue::Kind::kList;
  two.list.Ensure().i = {1};
  two.list->s = {"x"};
  EXPECT_FALSE(AttrFromProto(two).ok());
  wire::AttrValue deep;
  for (int i = 0; i < 100; ++i) {
    wire::AttrValue outer;
    outer.kind = wire::AttrValue::Kind::kFunc;
    outer.func.Ensure().attr["f"] = std::move(deep);
    deep = std::move(outer);
  }
  EXPECT_EQ(AttrFromProto(deep).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AttrTest, SaysWhatItIsAndWhatWasWanted) {
  const AttrMap attrs{{"n", AttrValue(3)}};
  EXPECT_EQ(*GetAttr<int64_t>(attrs, "n"), 3);
  EXPECT_EQ(GetAttr<DType>(attrs, "n").status().message(), "attribute 'n' has value 3 of kind int when type expected");
  EXPECT_EQ(GetAttr<DType>(attrs, "m").status().message(), "missing attribute 'm'");
}

TEST(ExampleTest, ReadsItemsAndAttributes) {
  auto op = ParseSchema("X(a:f32, b:i32, s:str, c:c64) -> () | axis:int; name:string=\"\"");
  ASSERT_TRUE(op.ok());
  auto e = ParseExample(
      *op, "f32[2,3]{1 2 3 4 5 -6.5}, !i32[]{7}, str[2]{\"a b\" \"c,\"}, c64[1]{1-2i} | axis=-1; name=\"x|;\"");
  ASSERT_TRUE(e.ok()) << e.status();
  ASSERT_EQ(e->inputs.size(), 4u);
  EXPECT_EQ(e->differentiate, (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(e->inputs[0].data<float>()[5], -6.5f);
  EXPECT_EQ(e->inputs[2].data<TString>()[0].view(), "a b");
  EXPECT_EQ(e->inputs[3].data<complex64>()[0], complex64(1, -2));
  EXPECT_EQ(*e->attrs.find("axis")->second.get<int64_t>(), -1);
  EXPECT_EQ(*e->attrs.find("name")->second.get<std::string>(), "x|;");
}

TEST(ExampleTest, GeneratesTheSameValuesFromTheSameSeed) {
  auto op = ParseSchema("X(a:f64, b:f64, c:i64) -> ()");
  ASSERT_TRUE(op.ok());
  const char* text = "f64[64]~, f64[64]+, i64[3]#";
  auto a = ParseExample(*op, text, 7), b = ParseExample(*op, text, 7), c = ParseExample(*op, text, 8);
  ASSERT_TRUE(a.ok() && b.ok() && c.ok()) << a.status();
  EXPECT_TRUE(AttrValue(a->inputs[0]).Equals(AttrValue(b->inputs[0])));
  EXPECT_FALSE(AttrValue(a->inputs[0]).Equals(AttrValue(c->inputs[0])));
  for (double v : a->inputs[1].flat<double>()) EXPECT_TRUE(v > 0.5 && v < 1.5);
  EXPECT_EQ(a->inputs[2].data<int64_t>()[2], 2);
}

TEST(ExampleTest, RefusesNonsense) {
  auto op = ParseSchema("X(a:f32) -> ()");
  ASSERT_TRUE(op.ok());
  for (const char* bad : {"f32", "f32[2]{1}", "f32[2]", "f32[2]?", "zzz[1]~", "f32[-1]~", "f32[2]{1 2", "f32[1]~ | n=1",
                          "f32[99999999,9999]~", "i8[1]{300}"}) {
    EXPECT_FALSE(ParseExample(*op, bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace millrace
