// SPDX-License-Identifier: Apache-2.0
#include "wire/api_def.h"
#include "capi/test_support.h"

namespace millrace::capi {
namespace {

class ApiDefTest : public ::testing::Test {
 protected:
  ApiDefTest() {
    TF_Buffer* ops = TF_GetAllOpList();
    map_ = TF_NewApiDefMap(ops, status_);
    EXPECT_TF_OK(status_.s);
    TF_DeleteBuffer(ops);
  }
  ~ApiDefTest() override { TF_DeleteApiDefMap(map_); }
  TF_Code Put(const std::string& text) {
    return TF_ApiDefMapPut(map_, text.data(), text.size(), status_), status_.code();
  }
  wire::ApiDef Get(const char* op) {
    TF_Buffer* bytes = TF_ApiDefMapGet(map_, op, std::strlen(op), status_);
    EXPECT_TF_OK(status_.s);
    wire::ApiDef def;
    if (bytes == nullptr) return def;
    EXPECT_TRUE(wire::Decode(std::string(static_cast<const char*>(bytes->data), bytes->length), &def).ok());
    TF_DeleteBuffer(bytes);
    return def;
  }
  ScopedStatus status_;
  TF_ApiDefMap* map_ = nullptr;
};

TEST_F(ApiDefTest, SaysWhatTheOpSays) {
  const wire::ApiDef def = Get("MatMul");
  EXPECT_EQ(def.graph_op_name, "MatMul");
  EXPECT_EQ(def.visibility, wire::ApiDef::kVisible);
  ASSERT_EQ(def.in_arg.size(), 2u);
  EXPECT_EQ(def.in_arg[1].rename_to, "b");
  EXPECT_EQ(def.arg_order, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Get("NoSuchOp").graph_op_name, "");
  EXPECT_EQ(Put(""), TF_FAILED_PRECONDITION) << "after the first Get";
}

TEST_F(ApiDefTest, LaysTextOverIt) {
  ASSERT_EQ(Put(R"(
op {
  graph_op_name: "MatMul"
  visibility: HIDDEN
  endpoint { name: "Product" }
  in_arg { name: "a" rename_to: "left" description: <<END
The `a` of "a" times `b`,
a matrix.
END
  }
  arg_order: "b"
  arg_order: "a"
  description_suffix: "Not `a` sum."
}
op { graph_op_name: "NoSuchOp" summary: "passed over" })"),
            TF_OK)
      << status_.message();
  EXPECT_EQ(Put("op { graph_op_name: 'MatMul' in_arg { name: 'c' } }"), TF_FAILED_PRECONDITION);
  EXPECT_EQ(Put("op { graph_op_name: 'MatMul' arg_order: 'a' }"), TF_FAILED_PRECONDITION);
  EXPECT_EQ(Put("op { graph_op_name: 'MatMul' summary: <<END\nno end"), TF_INVALID_ARGUMENT);
  EXPECT_NE(Put("op { nonsense: 1 }"), TF_OK);
  const wire::ApiDef def = Get("MatMul");
  EXPECT_EQ(def.visibility, wire::ApiDef::kHidden);
  ASSERT_EQ(def.endpoint.size(), 1u);
  EXPECT_EQ(def.endpoint[0].name, "Product");
  EXPECT_EQ(def.in_arg[0].description, "The `left` of \"a\" times `b`,\na matrix.");
  EXPECT_EQ(def.arg_order, (std::vector<std::string>{"b", "a"}));
  EXPECT_NE(def.description.find("Not `left` sum."), std::string::npos) << def.description;
}

}  // namespace
}  // namespace millrace::capi
