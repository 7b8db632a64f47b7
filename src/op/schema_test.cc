// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/match.h"
#include "op/op_def.h"
#include "op/op_registry.h"

namespace millrace {
namespace {

TEST(SchemaTest, ReadsArgumentsAttributesAndFlags) {
  auto op = ParseSchema(
      "Big(a:T, n:N*T, l:[Ts], r:&f32) -> (o:T, q:N*&i64) | T in FC|IDX=f64; N:int>=2; Ts:list(type)>=1; "
      "mode in {A,B}=\"B\"; s:shape=?; dims:list(int)=[1,-2]; f:float=1e-3; t:bool=true; x:string=\"a;|=\\n\" | S C "
      "D9");
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_EQ(op->name, "Big");
  ASSERT_EQ(op->inputs.size(), 4u);
  EXPECT_EQ(op->inputs[0].type_attr, "T");
  EXPECT_EQ(op->inputs[1].number_attr, "N");
  EXPECT_EQ(op->inputs[2].type_list_attr, "Ts");
  EXPECT_TRUE(op->inputs[3].is_ref);
  EXPECT_EQ(op->inputs[3].type, DType::kFloat);
  EXPECT_TRUE(op->outputs[1].is_ref);
  EXPECT_EQ(op->outputs[1].type, DType::kInt64);
  EXPECT_EQ(op->FindAttr("T")->allowed_types.size(), 8u);
  EXPECT_EQ(*op->FindAttr("T")->default_value.get<DType>(), DType::kDouble);
  EXPECT_EQ(op->FindAttr("N")->minimum, 2);
  EXPECT_EQ(op->FindAttr("mode")->allowed_strings, (std::vector<std::string>{"A", "B"}));
  EXPECT_FALSE(op->FindAttr("s")->default_value.get<PartialShape>()->has_rank());
  EXPECT_EQ(*op->FindAttr("dims")->default_value.get<std::vector<int64_t>>(), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*op->FindAttr("x")->default_value.get<std::string>(), "a;|=\n");
  EXPECT_TRUE(op->stateful && op->commutative && !op->aggregate);
  EXPECT_EQ(op->deprecation_version, 9);
}

TEST(SchemaTest, RefusesWhatIsWrong) {
  for (const char* bad : {
           "",
           "NoArrow(a:T)",
           "X(a:T) -> (b:T)",
           "X(a:U) -> () | T:type",
           "X() -> () | T:strange",
           "X(a) -> ()",
           "X() -> () | T:type; T:type",
           "X(a:f32, a:f32) -> ()",
           "X() -> () | S | n:int | m:int",
           "X() -> () | Q",
           "X(a:N*f32) -> () | N:type",
           "X() -> () | T in f99",
           "X() -> () | n:int=x",
           "X(a:f32 -> ()",
           "X() -> () | l:list(int)=1",
       }) {
    EXPECT_EQ(ParseSchema(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(SchemaTest, BadDeclarationsEndInTheStatus) {
  OpRegistry registry;
  registry.Add("Fine() -> ()").Doc("x").NotDifferentiable("no inputs").NoExample("none");
  EXPECT_TRUE(registry.status().ok());
  registry.Add("Broken(").Doc("never seen");
  EXPECT_FALSE(registry.status().ok());
  OpRegistry twice;
  twice.Add("Same() -> ()");
  twice.Add("Same() -> ()");
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(twice.All().size(), 1u);
}

// Where the environment says, or in a folder "shared" above this one.
std::ifstream OpenSchemaList() {
  if (const char* root = std::getenv("MILLRACE_SHARED")) {
    return std::ifstream(absl::StrCat(root, "/spec/op-schemas.txt"));
  }
  std::string up;
  for (int i = 0; i < 6; ++i, up += "../") {
    std::ifstream file(absl::StrCat(up, "shared/spec/op-schemas.txt"));
    if (file) return file;
  }
  return std::ifstream();
}

TEST(SchemaTest, ReadsTheWholeSchemaList) {
  std::ifstream file = OpenSchemaList();
  if (!file.is_open()) GTEST_SKIP() << "no schema list here";
  int parsed = 0;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "## USAGE")) break;
    if (line.empty() || line[0] == '#' || absl::StrContains(line, "| as _")) continue;
    auto op = ParseSchema(line);
    EXPECT_TRUE(op.ok()) << line << "\n" << op.status();
    if (!op.ok()) continue;
    parsed += op->name[0] != '_';
    auto proto = OpDefToProto(*op);
    ASSERT_TRUE(proto.ok()) << line << proto.status();
    auto back = OpDefFromProto(*proto);
    ASSERT_TRUE(back.ok()) << line << back.status();
    EXPECT_EQ(back->attrs.size(), op->attrs.size());
  }
  EXPECT_EQ(parsed, 958);
}

OpDef Parse(const char* schema) {
  auto op = ParseSchema(schema);
  EXPECT_TRUE(op.ok()) << op.status();
  return op.ok() ? *op : OpDef();
}

TEST(AttrsTest, FillsDefaultsAndChecksValues) {
  const OpDef op = Parse("X(a:T) -> (b:T) | T in FC; n:int>=1=3; l:list(int)=[]; m in {A,B}=\"A\"");
  AttrMap attrs{{"T", AttrValue(DType::kFloat)}, {"_hint", AttrValue(1)}, {"new", AttrValue(2)}};
  std::vector<std::string> unknown;
  ASSERT_TRUE(CompleteAttrs(op, &attrs, &unknown).ok());
  EXPECT_EQ(*attrs.find("n")->second.get<int64_t>(), 3);
  EXPECT_EQ(unknown, std::vector<std::string>{"new"});

  const auto error = [&](AttrMap a) { return std::string(CompleteAttrs(op, &a, nullptr).message()); };
  EXPECT_EQ(error({}), "missing attribute 'T' of op X");
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(DType::kString)}}), "not in its allowed list"));
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(1)}}), "of kind int when type expected"));
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(std::vector<DType>{})}}), "of kind list(type)"));
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(MakeRefType(DType::kFloat))}}), "illegal type"));
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(DType::kFloat)}, {"n", AttrValue(0)}}), "at least 1"));
  EXPECT_TRUE(absl::StrContains(error({{"T", AttrValue(DType::kFloat)}, {"m", AttrValue("C")}}), "not in its allowed"));
}

TEST(AttrsTest, ExpandsSignaturesWithinLimits) {
  const OpDef op = Parse("X(a:N*T, b:[Ts]) -> (o:&T, p:[Ts]) | N:int>=1; T:type; Ts:list(type)>=0");
  AttrMap attrs{{"N", AttrValue(2)},
                {"T", AttrValue(DType::kInt32)},
                {"Ts", AttrValue(std::vector<DType>{DType::kString, DType::kBool})}};
  auto s = ResolveSignature(op, attrs);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->input_types, (std::vector<DType>{DType::kInt32, DType::kInt32, DType::kString, DType::kBool}));
  EXPECT_EQ(s->output_types[0], MakeRefType(DType::kInt32));
  EXPECT_EQ(s->input_args[1].begin, 2);
  EXPECT_EQ(s->output_args[1].end, 3);
  attrs["N"] = AttrValue(int64_t{250'000'000});
  EXPECT_EQ(ResolveSignature(op, attrs).status().code(), absl::StatusCode::kInvalidArgument);
  attrs["N"] = AttrValue(int64_t{-1});
  EXPECT_EQ(ResolveSignature(op, attrs).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
