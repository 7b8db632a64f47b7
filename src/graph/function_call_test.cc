// SPDX-License-Identifier: Apache-2.0
#include "graph/function_call.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "graph/graph_def.h"
#include "graph/test_ops.h"

namespace millrace {
namespace {

TEST(FunctionCallTest, RefusesBrokenBodies) {
  const auto error = [&](absl::string_view node, absl::string_view ret) {
    Graph g(&TestOps());
    wire::GraphDef def;
    EXPECT_TRUE(wire::DecodeText(
                    absl::StrCat("library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
                                 "output_arg { name: 'y' type: DT_FLOAT } } ",
                                 node, ret, " } }"),
                    &def)
                    .ok());
    EXPECT_TRUE(ImportGraphDef(def, {}, &g).ok());
    GraphBuilder b(&g);
    const Output x = TestInput(b, "x", DType::kFloat);
    const int mark = g.num_node_ids();
    const Status s = InstantiateFunction({"F", {}, {x}, {}, "c", ""}, &g).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_EQ(g.num_node_ids(), mark);
    return std::string(s.message());
  };
  constexpr absl::string_view kNode =
      "node_def { name: 'n' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }";
  EXPECT_TRUE(absl::StrContains(error(kNode, ""), "not returned"));
  EXPECT_TRUE(absl::StrContains(error(kNode, "ret { key: 'y' value: 'n:output:1' }"), "names no argument"));
  EXPECT_TRUE(absl::StrContains(error(kNode, "ret { key: 'y' value: 'n:wrong:0' }"), "names no argument"));
  EXPECT_TRUE(absl::StrContains(
      error("node_def { name: 'n' op: 'Identity' input: 'zzz' attr { key: 'T' value { type: DT_FLOAT } } }",
            "ret { key: 'y' value: 'x' }"),
      "names no argument"));
  EXPECT_TRUE(absl::StrContains(
      error("node_def { name: 'n' op: 'Identity' input: 'x' attr { key: 'T' value { placeholder: 'Q' } } }",
            "ret { key: 'y' value: 'x' }"),
      "does not give attribute 'Q'"));
  EXPECT_TRUE(absl::StrContains(
      error("node_def { name: 'n' op: 'Shape' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",
            "ret { key: 'y' value: 'n:output:0' }"),
      "the signature says float"));
  EXPECT_TRUE(absl::StrContains(
      error("node_def { name: 'x' op: 'NoOp' }", "ret { key: 'y' value: 'x' }"), "name of an argument"));
}

}  // namespace
}  // namespace millrace
