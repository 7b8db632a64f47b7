// SPDX-License-Identifier: Apache-2.0
// Graphs whose structure is wrong: functions, edges, loops, names.
#include "absl/strings/str_cat.h"
#include "bad_inputs/harness.h"

namespace millrace::bad_inputs {
namespace {

const wire::AttrValue kF32 = Type(DType::kFloat);

TEST(BadInput, G01_FunctionThatCallsItselfTwice) {
  GraphMaker g;
  g.CallingFunction("F", "F", 2).F32("x", {}, {1}).Raw("bad", "F", {"x"});
  Check(g, {absl::StatusCode::kResourceExhausted});  // they run until the limit of calls
}

TEST(BadInput, G02_FunctionsThatCallEachOther) {
  GraphMaker g;
  g.CallingFunction("A", "B").CallingFunction("B", "A").F32("x", {}, {1}).Raw("bad", "A", {"x"});
  Check(g, {absl::StatusCode::kResourceExhausted});  // they run until the limit of calls
}

TEST(BadInput, G03_FunctionChain3000Deep) {
  GraphMaker g;
  for (int i = 0; i < 3000; ++i) g.CallingFunction(absl::StrCat("F", i), i == 2999 ? "Neg" : absl::StrCat("F", i + 1));
  g.F32("x", {}, {1}).Raw("bad", "F0", {"x"});
  Check(g);
}

TEST(BadInput, G03_FunctionsThatCallTwice40Deep) {
  GraphMaker g;
  for (int i = 0; i < 40; ++i) g.CallingFunction(absl::StrCat("F", i), i == 39 ? "Neg" : absl::StrCat("F", i + 1), 2);
  g.F32("x", {}, {1}).Raw("bad", "F0", {"x"});
  Check(g, kTooLarge);
}

TEST(BadInput, G04_ListLongerThanTheInputs) {
  for (const char* op : {"Pack", "AddN"}) {
    GraphMaker g;
    g.F32("x", {}, {1}).Raw("bad", op, {"x", "x"}, {{"N", Int(250000000)}, {"T", kF32}});
    Check(g);
  }
  GraphMaker g;
  g.Strings("s", {}, {"a"}).Raw("bad", "StringJoin", {"s", "s"}, {{"N", Int(250000000)}});
  Check(g);
}

TEST(BadInput, G04_ManyOutputs) {
  for (int64_t n : {int64_t{-1}, int64_t{1} << 31, INT64_MAX}) {
    GraphMaker g;
    g.I32("axis", {}).F32("x", {4}).Raw("bad", "Split", {"axis", "x"}, {{"num_split", Int(n)}, {"T", kF32}});
    Check(g, kTooLarge);
    GraphMaker u;
    u.F32("x", {4}).Raw("bad", "Unpack", {"x"}, {{"num", Int(n)}, {"T", kF32}});
    Check(u, kTooLarge);
  }
}

TEST(BadInput, G05_PortPastOutputs) {
  for (const char* input : {"x:7", "x:-1", "x:99999999999", "x:2147483648", "x:1", "missing", "^missing", "", "^", ":0",
                            "x:", "x:0:0", "x: 0", "^x:0"}) {
    SCOPED_TRACE(input);
    GraphMaker g;
    g.F32("x", {}, {1}).Raw("bad", "Neg", {input}, {{"T", kF32}});
    Check(g);
  }
}

TEST(BadInput, G05_ControlInputBeforeData) {
  GraphMaker g;
  g.F32("x", {}, {1}).Raw("bad", "Neg", {"^x", "x"}, {{"T", kF32}});
  Check(g);
}

TEST(BadInput, G06_LoopPartsWithoutEnter) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  for (const char* op : {"Exit", "NextIteration"}) {
    GraphMaker g;
    g.F32("x", {}, {1}).Raw("bad", op, {"x"}, {{"T", kF32}});
    Check(g);
  }
}

TEST(BadInput, G06_MergeOfABackEdgeAlone) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  GraphMaker g;
  g.Raw("bad", "Merge", {"n", "n"}, {{"N", Int(2)}, {"T", kF32}}).Raw("n", "NextIteration", {"bad"}, {{"T", kF32}});
  Check(g);
}

TEST(BadInput, G06_MergeOutsideTheFrameOfItsBackEdge) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  GraphMaker g;
  g.F32("x", {}, {1})
      .Raw("e", "Enter", {"x"}, {{"T", kF32}, {"frame_name", Str("f")}})
      .Raw("n", "NextIteration", {"e"}, {{"T", kF32}})
      .Raw("bad", "Merge", {"x", "n"}, {{"N", Int(2)}, {"T", kF32}});
  Check(g);
}

TEST(BadInput, G06_OneFrameNameUnderTwoParents) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  GraphMaker g;
  g.F32("x", {}, {1})
      .Raw("a", "Enter", {"x"}, {{"T", kF32}, {"frame_name", Str("f")}})
      .Raw("b", "Enter", {"a"}, {{"T", kF32}, {"frame_name", Str("f")}})
      .Raw("b1", "Exit", {"b"}, {{"T", kF32}})
      .Raw("bad", "Exit", {"b1"}, {{"T", kF32}});
  Check(g);
}

TEST(BadInput, G06_EnterWhoseParallelismIsNotPositive) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  for (int64_t n : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    GraphMaker g;
    g.F32("x", {}, {1})
        .Raw("e", "Enter", {"x"}, {{"T", kF32}, {"frame_name", Str("f")}, {"parallel_iterations", Int(n)}})
        .Raw("bad", "Exit", {"e"}, {{"T", kF32}});
    Check(g, {absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument});
  }
}

TEST(BadInput, G16_FewerInputsThanDeclared) {
  GraphMaker g;
  g.Raw("bad", "Mul", {}, {{"T", kF32}});
  Check(g);
  GraphMaker s;
  s.F32("x", {}, {1}).Raw("bad", HasOp("Switch") ? "Switch" : "Sub", {"x"}, {{"T", kF32}});
  Check(s);
  GraphMaker m;
  m.F32("x", {}, {1}).Raw("bad", "Neg", {"x", "x"}, {{"T", kF32}});
  Check(m);
  GraphMaker e;
  e.Raw("bad", "AddN", {}, {{"T", kF32}, {"N", Int(0)}});
  Check(e);
}

TEST(BadInput, G17_SignatureThatDisagreesWithTheBody) {
  for (const char* from : {"n0:y:1", "n0:y:-1", "n0:z:0", "n1:y:0", "n0", "x:0", "", "n0:y:99999999999"}) {
    SCOPED_TRACE(from);
    GraphMaker g;
    g.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"});
    g.def().library->function[0].ret["y"] = from;
    // Both forms name a value that exists.
    const bool legal = std::string(from) == "x:0" || std::string(from) == "n0";
    Check(g, legal ? Codes{absl::StatusCode::kOk, absl::StatusCode::kInvalidArgument} : kInvalid);
  }
}

TEST(BadInput, G17_SignatureWithoutItsParts) {
  GraphMaker none;
  none.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"});
  none.def().library->function[0].ret.clear();
  Check(none);
  GraphMaker more;
  more.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"});
  more.def().library->function[0].signature->output_arg.emplace_back().name = "z";
  Check(more);
  GraphMaker type;
  type.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"});
  type.def().library->function[0].signature->output_arg[0].type = static_cast<int32_t>(DType::kInt32);
  Check(type);
  GraphMaker signature;
  signature.CallingFunction("F", "Neg").F32("x", {}, {1}).Raw("bad", "F", {"x"});
  signature.def().library->function[0].signature.reset();
  Check(signature);
  GraphMaker missing;
  missing.CallingFunction("F", "NoSuchOp").F32("x", {}, {1}).Raw("bad", "F", {"x"});
  Check(missing, {absl::StatusCode::kUnimplemented});
}

TEST(BadInput, G18_OneBadNodeAmongAThousand) {
  GraphMaker g;
  g.F32("x0", {}, {1});
  for (int i = 0; i < 1000; ++i) {
    g.Raw(absl::StrCat("x", i + 1), "Neg", {absl::StrCat("x", i)}, {{"T", kF32}});
  }
  g.Raw("bad", "Conv2D", {"x1000", "x1000"}, {{"T", kF32}, {"strides", Ints({1, 0, 1, 1})}, {"padding", Str("SAME")}});
  Check(g);
}

TEST(BadInput, G21_DataCycle) {
  GraphMaker g;
  g.Raw("bad", "Neg", {"b"}, {{"T", kF32}}).Raw("b", "Neg", {"bad"}, {{"T", kF32}});
  Check(g);
  GraphMaker self;
  self.Raw("bad", "Neg", {"bad"}, {{"T", kF32}});
  Check(self);
  GraphMaker control;
  control.Raw("bad", "NoOp", {"^b"}).Raw("b", "NoOp", {"^bad"});
  Check(control);
}

TEST(BadInput, G21_EndlessLoopEndsAtItsDeadline) {
  if (!HasOp("Enter")) GTEST_SKIP() << "no control flow";
  // A loop over a true predicate: it stops because the step does. What it costs until then is bounded by memory only.
  GraphMaker g;
  g.F32("x", {}, {1})
      .Bools("t", {}, {true})
      .Raw("e", "Enter", {"x"}, {{"T", kF32}, {"frame_name", Str("f")}})
      .Raw("p", "Enter", {"t"}, {{"T", Type(DType::kBool)}, {"frame_name", Str("f")}, {"is_constant", Bool(true)}})
      .Raw("m", "Merge", {"e", "n"}, {{"N", Int(2)}, {"T", kF32}})
      .Raw("c", "LoopCond", {"p"})
      .Raw("s", "Switch", {"m", "c"}, {{"T", kF32}})
      .Raw("n", "NextIteration", {"s:1"}, {{"T", kF32}})
      .Raw("bad", "Exit", {"s"}, {{"T", kF32}});
  CheckEndless(g);
}

TEST(BadInput, G24_Names) {
  for (const std::string& name :
       {std::string(10 << 20, 'a'), std::string("_SOURCE"), std::string("a\xff\xfe"), std::string(), std::string("a b"),
        std::string("a:0"), std::string("^a"), std::string("a\0b", 3), std::string("-a"), std::string("/a")}) {
    SCOPED_TRACE(name.substr(0, 20));
    GraphMaker g;
    g.Raw("bad", "NoOp").Raw(name, "NoOp");
    Check(g);
  }
}

TEST(BadInput, G24_TwoNodesOfOneName) {
  GraphMaker g;
  g.Raw("bad", "NoOp").Raw("bad", "NoOp");
  Check(g);
  GraphMaker old;
  old.Raw("good", "NoOp").Raw("bad", "NoOp");
  Check(old);
}

TEST(BadInput, G24_Devices) {
  for (const char* device : {"/job:x/task:-1", "/job:x/task:99999999999", "/cpu:0/cpu:1/", "/device:", "\xff",
                             "/job:worker/replica:0/task:0/device:CPU:4294967296", "/device:GPU:0", "/job:nosuch"}) {
    SCOPED_TRACE(device);
    GraphMaker g;
    g.F32("x", {}, {1}).Raw("bad", "Neg", {"x"}, {{"T", kF32}}, device);
    Check(g);
  }
}

TEST(BadInput, G24_UnknownAndInternalOps) {
  for (const char* op : {"", "NoSuchOp", "_Arg", "_Retval", "_Send", "_Recv"}) {
    SCOPED_TRACE(op);
    GraphMaker g;
    g.Raw("bad", op, {}, {{"T", kF32}});
    Check(g, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound, absl::StatusCode::kUnimplemented});
  }
}

}  // namespace
}  // namespace millrace::bad_inputs
