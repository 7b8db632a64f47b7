// SPDX-License-Identifier: Apache-2.0
// Calls, conditionals and loops made of functions that do not fit.
#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);
const Codes kMissing = {absl::StatusCode::kNotFound, absl::StatusCode::kInvalidArgument};

wire::AttrValue TypeList(std::vector<DType> types) {
  wire::AttrValue v;
  v.kind = wire::AttrValue::Kind::kList;
  for (DType t : types) v.list.Ensure().type.push_back(static_cast<int32_t>(t));
  return v;
}
wire::AttrValue FuncList(std::vector<std::string> names) {
  wire::AttrValue v;
  v.kind = wire::AttrValue::Kind::kList;
  for (std::string& name : names) v.list.Ensure().func.emplace_back().name = std::move(name);
  return v;
}
wire::AttrValue Placeholder(std::string name) {
  wire::AttrValue v;
  v.kind = wire::AttrValue::Kind::kPlaceholder;
  v.placeholder = std::move(name);
  return v;
}
const wire::AttrValue kOneFloat = TypeList({DType::kFloat});

GraphMaker Base() {
  GraphMaker g;
  g.CallingFunction("F", "Neg").F32("x", {2}, {1, 2}).Bools("p", {}, {true}).I32("i", {}, {1});
  return g;
}
wire::FunctionDef& Function(GraphMaker& g, size_t i = 0) { return g.def().library->function[i]; }

void AddIf(GraphMaker& g, const std::string& then_branch, const std::string& else_branch) {
  g.Raw("bad", "If", {"p", "x"},
        {{"Tcond", Type(DType::kBool)},
         {"Tin", kOneFloat},
         {"Tout", kOneFloat},
         {"then_branch", Func(then_branch)},
         {"else_branch", Func(else_branch)}});
}
void AddWhile(GraphMaker& g, const std::string& cond, const std::string& body) {
  g.Raw("bad", "While", {"x"}, {{"T", kOneFloat}, {"cond", Func(cond)}, {"body", Func(body)}});
}

TEST(BadInput, F01_FunctionThatIsNotThere) {
  GraphMaker branch = Base(), body = Base(), call = Base(), gradient = Base(), chosen = Base();
  AddIf(branch, "F", "Absent");
  Check(branch, kMissing);
  AddWhile(body, "Absent", "F");
  Check(body, kMissing);
  call.Raw("bad", "PartitionedCall", {"x"}, {{"Tin", kOneFloat}, {"Tout", kOneFloat}, {"f", Func("Absent")}});
  Check(call, kMissing);
  gradient.Raw("bad", "SymbolicGradient", {"x", "x"},
               {{"Tin", TypeList({DType::kFloat, DType::kFloat})}, {"Tout", kOneFloat}, {"f", Func("Absent")}});
  Check(gradient, kMissing);
  chosen.Raw("bad", "Case", {"i", "x"}, {{"Tin", kOneFloat}, {"Tout", kOneFloat}, {"branches", FuncList({"F", ""})}});
  Check(chosen, kMissing);
}

TEST(BadInput, F02_BranchesOfOtherSignatures) {
  for (const bool then_is_wrong : {true, false}) {
    GraphMaker g = Base();
    g.CallingFunction("G", "Neg");
    Function(g, 1).signature->output_arg[0].type = static_cast<int32_t>(DType::kInt32);
    AddIf(g, then_is_wrong ? "G" : "F", then_is_wrong ? "F" : "G");
    Check(g);
  }
  GraphMaker more = Base();
  more.CallingFunction("G", "Neg");
  Function(more, 1).signature->input_arg.emplace_back().name = "second";
  Function(more, 1).signature->input_arg[1].type = static_cast<int32_t>(DType::kFloat);
  AddIf(more, "F", "G");
  Check(more);
  GraphMaker none = Base();
  none.CallingFunction("G", "Neg");
  Function(none, 1).signature->output_arg.clear();
  AddIf(none, "G", "F");
  Check(none);
}

TEST(BadInput, F03_LoopsThatChangeTypes) {
  GraphMaker not_bool = Base();  // a float that is not a scalar counts as true: the loop would never end
  not_bool.CallingFunction("G", "Neg");
  Function(not_bool, 1).signature->output_arg[0].type = static_cast<int32_t>(DType::kInt32);
  AddWhile(not_bool, "F", "G");
  Check(not_bool);
  GraphMaker two = Base();
  two.CallingFunction("G", "Neg");
  Function(two, 1).signature->output_arg.emplace_back(Function(two, 1).signature->output_arg[0]).name = "z";
  Function(two, 1).ret["z"] = Function(two, 1).ret["y"];
  AddWhile(two, "G", "F");
  Check(two);
}

TEST(BadInput, F04_RecursionOnABranch) {
  GraphMaker g = Base();
  wire::FunctionDef& f = Function(g);
  f.signature->input_arg.emplace_back(f.signature->input_arg[0]).name = "again";
  f.node_def[0].op = "If";
  f.node_def[0].input = {"again", "x", "again"};
  const wire::AttrValue two = TypeList({DType::kFloat, DType::kFloat});
  f.node_def[0].attr = {
      {"Tcond", kF32}, {"Tin", two}, {"Tout", kOneFloat}, {"then_branch", Func("F")}, {"else_branch", Func("F")}};
  f.ret["y"] = absl::StrCat(f.node_def[0].name, ":output:0");
  g.Raw("bad", "F", {"x", "x"});
  Check(g, {absl::StatusCode::kResourceExhausted});  // the limit: every branch calls the function again
}

// No signature shows this recursion: what is called comes with the call.
TEST(BadInput, F05_RecursionThroughAttributes) {
  for (const char* op : {"PartitionedCall", "SymbolicGradient"}) {
    GraphMaker g = Base();
    g.CallingFunction("Apply", "Neg").CallingFunction("Loop", "Apply");
    wire::FunctionDef& apply = Function(g, 1);
    auto& attr = apply.signature->attr.emplace_back();
    attr.name = "g";
    attr.type = "func";
    apply.node_def[0].op = op;
    if (std::string(op) == "SymbolicGradient") apply.node_def[0].input = {"x", "x"};
    const bool one = apply.node_def[0].input.size() == 1;
    apply.node_def[0].attr = {
        {"Tin", one ? kOneFloat : TypeList({DType::kFloat, DType::kFloat})},
        {"Tout", kOneFloat},
        {"f", Placeholder("g")}};
    apply.ret["y"] = absl::StrCat(apply.node_def[0].name, ":output:0");
    wire::FunctionDef& loop = Function(g, 2);
    wire::AttrValue self = Func("Apply");  // Apply[g = Apply[g = ...]] without an end cannot be written down
    self.func->attr["g"] = Placeholder("g");
    loop.node_def[0].attr = {{"g", self}};
    loop.ret["y"] = absl::StrCat(loop.node_def[0].name, ":y");
    auto& loop_attr = loop.signature->attr.emplace_back();
    loop_attr.name = "g";
    loop_attr.type = "func";
    wire::AttrValue again = Func("Loop");
    again.func->attr["g"] = Func("Loop");
    g.Raw("bad", "Loop", {"x"}, {{"g", again}});
    Check(g, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound, absl::StatusCode::kResourceExhausted});
  }
}

TEST(BadInput, F06_BodyThatReadsAMissingNode) {
  for (const char* input : {"gone", "gone:y:0", "x:1", "^gone", ""}) {
    SCOPED_TRACE(input);
    GraphMaker g = Base();
    Function(g).node_def[0].input = {input};
    AddIf(g, "F", "F");
    Check(g);
  }
}

TEST(BadInput, F07_ForThatDoesNotEnd) {
  for (const int32_t delta : {0, -1, INT32_MIN}) {
    GraphMaker g;
    g.CallingFunction("F", "Neg")
        .F32("x", {2})
        .I32("start", {}, {0})
        .I32("limit", {}, {INT32_MAX})
        .I32("delta", {}, {delta});
    wire::FunctionDef& f = Function(g);
    f.signature->input_arg.insert(f.signature->input_arg.begin(), wire::OpArgDef());
    f.signature->input_arg[0].name = "i";
    f.signature->input_arg[0].type = static_cast<int32_t>(DType::kInt32);
    g.Raw("bad", "For", {"start", "limit", "delta", "x"}, {{"T", kOneFloat}, {"body", Func("F")}});
    Check(g);
  }
}

TEST(BadInput, F08_IndexThatIsNoScalar) {
  GraphMaker g = Base();
  g.I32("index", {2}, {0, 1})
      .Raw(
          "bad", "Case", {"index", "x"}, {{"Tin", kOneFloat}, {"Tout", kOneFloat}, {"branches", FuncList({"F", "F"})}});
  Check(g);
}

TEST(BadInput, F09_RemoteTargetThatIsNoDevice) {
  for (const char* target : {"nowhere", "/job:worker/task:7", "/device:TPU:9", "\x01"}) {
    GraphMaker g = Base();
    g.Strings("target", {}, {target})
        .Raw("bad", "RemoteCall", {"target", "x"}, {{"Tin", kOneFloat}, {"Tout", kOneFloat}, {"f", Func("F")}});
    Check(g, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnimplemented}, How::kConstants);
  }
}

TEST(BadInput, F10_GradientOfTheWrongArguments) {
  GraphMaker g = Base();
  g.Raw("bad", "SymbolicGradient", {"x"}, {{"Tin", kOneFloat}, {"Tout", kOneFloat}, {"f", Func("F")}});
  Check(g);
  GraphMaker types = Base();
  types.Raw("bad", "SymbolicGradient", {"i", "x"},
            {{"Tin", TypeList({DType::kInt32, DType::kFloat})}, {"Tout", TypeList({DType::kInt32})}, {"f", Func("F")}});
  Check(types);
}

TEST(BadInput, F11_LoopThatNeverEnds) {
  GraphMaker g = Base();
  AddWhile(g, "F", "F");  // a float vector is true
  CheckEndless(g);
}

TEST(BadInput, F12_ConstantsThatGrowWithEveryCall) {
  GraphMaker g = Base();
  wire::NodeDef& c = Function(g).node_def.emplace_back();
  c.name = "c";
  c.op = "Const";
  c.attr = {{"dtype", kF32}, {"value", TensorOf(Values(DType::kFloat, {1 << 25}))}};
  g.CallingFunction("Many", "F", 100).Raw("bad", "Many", {"x"});
  Check(g, kTooLarge);
}

TEST(BadInput, F13_ManyWaitForMany) {
  GraphMaker g = Base();
  std::vector<std::string> inputs = {"x"};
  for (int i = 0; i < 300; ++i) {
    g.F32(absl::StrCat("c", i), {});
    inputs.push_back(absl::StrCat("^c", i));
    wire::NodeDef& n = Function(g).node_def.emplace_back();
    n.name = absl::StrCat("waits", i);
    n.op = "NoOp";
  }
  g.CallingFunction("Many", "F", 30).Raw("bad", "Many", inputs);
  Check(g, kOk);
}

TEST(BadInput, F14_LongNamesThatGrowWithDepth) {
  GraphMaker g;
  const std::string filler(3000, 'n');
  for (int i = 0; i < 100; ++i) {
    g.CallingFunction(absl::StrCat("F", i), i == 99 ? "Neg" : absl::StrCat("F", i + 1));
    wire::FunctionDef& f = Function(g, static_cast<size_t>(i));
    const std::string old = f.node_def[0].name;
    f.node_def[0].name = filler;
    std::string& ret = f.ret["y"];
    ret = filler + ret.substr(old.size());
  }
  g.F32("x", {}, {1}).Raw("bad", "F0", {"x"});
  Check(g, kOk);
}

}  // namespace
}  // namespace millrace::bad_inputs
