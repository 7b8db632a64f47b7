// SPDX-License-Identifier: Apache-2.0
// String tensors in the form of 1.x and of 2.x: what one writes the other reads. fuzz/string_fuzz.cc gives them bad
// bytes.
#include <cstdlib>

#include "capi/entry_points.h"
#include "capi/test_support.h"

namespace millrace::capi {
namespace {

using Strings = std::vector<std::string>;

Strings Samples() {
  return {"",
          "a",
          std::string("nul\0inside", 10),
          std::string(22, 'b'),
          std::string(23, 'c'),
          std::string(127, 'd'),
          std::string(128, 'e'),
          std::string(70000, 'f')};
}

std::string Encoded(const Strings& strings) {
  std::string table(strings.size() * 8, '\0'), rest;
  ScopedStatus status;
  for (size_t i = 0; i < strings.size(); ++i) {
    const uint64_t offset = rest.size();
    std::memcpy(&table[i * 8], &offset, 8);
    rest.resize(rest.size() + TF_StringEncodedSize(strings[i].size()));
    TF_StringEncode(strings[i].data(), strings[i].size(), &rest[offset], rest.size() - offset, status);
    EXPECT_TF_OK(status.s);
  }
  return table + rest;
}

TF_Tensor* OldTensor(const std::vector<int64_t>& dims, const std::string& bytes) {
  TF_Tensor* t = MR_OldAllocateTensor(TF_STRING, dims.data(), static_cast<int>(dims.size()), bytes.size());
  if (t != nullptr) std::memcpy(MR_OldTensorData(t), bytes.data(), bytes.size());
  return t;
}

TF_Tensor* NewTensor(const std::vector<int64_t>& dims, const Strings& strings) {
  TF_Tensor* t = TF_AllocateTensor(TF_STRING, dims.data(), static_cast<int>(dims.size()), strings.size() * 24);
  auto* s = static_cast<TF_TString*>(TF_TensorData(t));
  for (size_t i = 0; i < strings.size(); ++i) TF_StringCopy(&s[i], strings[i].data(), strings[i].size());
  return t;
}

Strings ReadOld(const TF_Tensor* t) {
  const char* data = static_cast<const char*>(MR_OldTensorData(t));
  const size_t count = static_cast<size_t>(TF_TensorElementCount(t)), size = MR_OldTensorByteSize(t);
  ScopedStatus status;
  Strings out;
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset;
    std::memcpy(&offset, data + i * 8, 8);
    const char* s = nullptr;
    size_t n = 0;
    TF_StringDecode(data + count * 8 + offset, size - count * 8 - offset, &s, &n, status);
    EXPECT_TF_OK(status.s);
    out.emplace_back(s, n);
  }
  return out;
}

Strings ReadNew(const TF_Tensor* t) {
  const auto* s = static_cast<const TF_TString*>(TF_TensorData(t));
  Strings out;
  for (int64_t i = 0; i < TF_TensorElementCount(t); ++i) {
    out.emplace_back(TF_StringGetDataPointer(&s[i]), TF_StringGetSize(&s[i]));
  }
  return out;
}

// A session on joined = x + "!" and same = x.
struct Joiner {
  Joiner() {
    x = graph.Placeholder("x", TF_STRING);
    TF_OperationDescription* d = TF_NewOperation(graph.g, "Const", "mark");
    TF_Tensor* mark = OldTensor({}, Encoded({"!"}));
    TF_SetAttrType(d, "dtype", TF_STRING);
    TF_SetAttrTensor(d, "value", mark, graph.status);
    EXPECT_TF_OK(graph.status.s);
    TF_DeleteTensor(mark);
    const TF_Output inputs[] = {{x, 0}, {graph.Finish(d), 0}};
    d = TF_NewOperation(graph.g, "StringJoin", "joined");
    TF_AddInputList(d, inputs, 2);
    joined = graph.Finish(d);
    same = graph.Op("Identity", "same", {x});
    session = TF_NewSession(graph.g, nullptr, graph.status);
    EXPECT_TF_OK(graph.status.s);
  }
  ~Joiner() { TF_DeleteSession(session, graph.status); }
  // Deletes `value`.
  TF_Code Run(TF_Tensor* value, TF_Operation* fetch, TF_Tensor** result) {
    const TF_Output feed = {x, 0}, output = {fetch, 0};
    TF_SessionRun(session, nullptr, &feed, &value, 1, &output, result, 1, nullptr, 0, nullptr, graph.status);
    TF_DeleteTensor(value);
    return graph.status.code();
  }
  TestGraph graph;
  TF_Operation *x, *joined, *same;
  TF_Session* session;
};

TEST(StringFormTest, EachFormReadsTheOther) {
  Joiner j;
  const Strings samples = Samples();
  const auto n = static_cast<int64_t>(samples.size());
  Strings marked;
  for (const std::string& s : samples) marked.push_back(s + "!");
  for (const bool old : {true, false}) {
    for (TF_Operation* fetch : {j.joined, j.same}) {
      TF_Tensor* value = old ? OldTensor({2, n / 2}, Encoded(samples)) : NewTensor({2, n / 2}, samples);
      ASSERT_NE(value, nullptr);
      EXPECT_EQ(TF_TensorType(value), TF_STRING);
      EXPECT_EQ(TF_NumDims(value), 2);
      EXPECT_EQ(TF_Dim(value, 1), n / 2);
      EXPECT_EQ(TF_TensorElementCount(value), n);
      EXPECT_EQ(ReadOld(value), samples);
      EXPECT_EQ(ReadNew(value), samples);
      TF_SetShape(value, &n, 1);
      EXPECT_EQ(TF_Dim(value, 0), n);
      TF_Tensor* result = nullptr;
      ASSERT_EQ(j.Run(value, fetch, &result), TF_OK) << j.graph.status.message();
      const Strings& want = fetch == j.joined ? marked : samples;
      EXPECT_EQ(ReadNew(result), want);
      EXPECT_EQ(ReadOld(result), want);
      EXPECT_EQ(MR_OldTensorByteSize(result), Encoded(want).size());
      TF_DeleteTensor(result);
    }
  }
}

TEST(StringFormTest, OldBytesAreReleasedOnceAndNothingIsAskedOfThem) {
  int calls = 0;
  const auto count = [](void*, size_t, void* arg) { ++*static_cast<int*>(arg); };
  const int64_t dims[] = {2}, bad[] = {-1};
  char bytes[4] = {};
  TF_Tensor* t = MR_OldNewTensor(TF_STRING, dims, 1, bytes, sizeof(bytes), count, &calls);
  ASSERT_NE(t, nullptr) << "too few bytes are an error of the step";
  EXPECT_EQ(MR_OldTensorData(t), bytes);
  EXPECT_EQ(MR_OldTensorByteSize(t), sizeof(bytes));
  EXPECT_EQ(TF_TensorData(t), nullptr);
  EXPECT_EQ(TF_TensorByteSize(t), 0u);
  EXPECT_EQ(TF_TensorMaybeMove(t), nullptr);
  EXPECT_EQ(calls, 0);
  Joiner j;
  TF_Tensor* result = nullptr;
  EXPECT_EQ(j.Run(t, j.joined, &result), TF_INVALID_ARGUMENT);
  EXPECT_NE(j.graph.status.message().find("Malformed TF_STRING tensor; too short"), std::string::npos)
      << j.graph.status.message();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(MR_OldNewTensor(TF_STRING, bad, 1, bytes, 4, count, &calls), nullptr);
  EXPECT_EQ(MR_OldNewTensor(TF_STRING, dims, 1, nullptr, 4, count, &calls), nullptr);
  EXPECT_EQ(calls, 3);
  TF_Tensor* own = OldTensor({1}, Encoded({"moved"}));
  TF_Tensor* moved = TF_TensorMaybeMove(own);
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(ReadOld(moved), Strings{"moved"});
  TF_DeleteTensor(moved);
  EXPECT_STREQ(MR_OldVersion(), "1.15.5");
}

TEST(StringFormTest, ElementsMayShareTheirCharacters) {
  // 50000 elements that all are the one long string: they must not become 50000 copies on their way in.
  std::string bytes(50000 * 8, '\0'), text(1 << 20, 'z'), encoded(TF_StringEncodedSize(text.size()), '\0');
  ScopedStatus status;
  TF_StringEncode(text.data(), text.size(), encoded.data(), encoded.size(), status);
  Joiner j;
  TF_Tensor* result = nullptr;
  ASSERT_EQ(j.Run(OldTensor({50000}, bytes + encoded), j.same, &result), TF_OK) << j.graph.status.message();
  const auto* s = static_cast<const TF_TString*>(TF_TensorData(result));
  EXPECT_EQ(TF_StringGetSize(&s[49999]), text.size());
  TF_DeleteTensor(result);
}

TEST(StringFormTest, StateKeepsWhatWasFed) {
  const Strings samples = Samples();
  const auto n = static_cast<int64_t>(samples.size());
  for (const bool old : {true, false}) {
    TestGraph g;
    TF_Operation* x = g.Placeholder("x", TF_STRING);
    TF_OperationDescription* d = TF_NewOperation(g.g, "VarHandleOp", "v");
    TF_SetAttrType(d, "dtype", TF_STRING);
    TF_SetAttrShape(d, "shape", nullptr, -1);
    TF_Operation* v = g.Finish(d);
    TF_Operation* assign = g.Op("AssignVariableOp", "assign", {v, x});
    d = TF_NewOperation(g.g, "ReadVariableOp", "read");
    TF_AddInput(d, {v, 0});
    TF_SetAttrType(d, "dtype", TF_STRING);
    const TF_Output read = {g.Finish(d), 0}, feed = {x, 0};
    TF_Session* session = TF_NewSession(g.g, nullptr, g.status);
    int released = 0;
    const std::string bytes = Encoded(samples);
    void* memory = std::malloc(bytes.size());
    std::memcpy(memory, bytes.data(), bytes.size());
    const auto release = [](void* p, size_t, void* count) { std::free(p), ++*static_cast<int*>(count); };
    TF_Tensor* value =
        old ? MR_OldNewTensor(TF_STRING, &n, 1, memory, bytes.size(), release, &released) : NewTensor({n}, samples);
    if (!old) release(memory, 0, &released);  // NewTensor makes its own
    TF_SessionRun(session, nullptr, &feed, &value, 1, nullptr, nullptr, 0, &assign, 1, nullptr, g.status);
    EXPECT_TF_OK(g.status.s);
    TF_DeleteTensor(value);
    TF_Tensor* result = nullptr;
    TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &read, &result, 1, nullptr, 0, nullptr, g.status);
    EXPECT_TF_OK(g.status.s);
    EXPECT_EQ(ReadNew(result), samples);
    EXPECT_EQ(ReadOld(result), samples);
    TF_DeleteTensor(result);
    TF_DeleteSession(session, g.status);
    EXPECT_EQ(released, 1);
  }
}

TEST(StringFormTest, PointersToNothingAreRefused) {
  Joiner j;
  for (const uintptr_t address : {uintptr_t{16}, uintptr_t{1} << 47, ~uintptr_t{0} - 100}) {
    alignas(8) TF_TString s = {};
    TF_StringAssignView(&s, reinterpret_cast<const char*>(address), 64);
    TF_Tensor* result = nullptr;
    EXPECT_EQ(
        j.Run(TF_NewTensor(TF_STRING, nullptr, 0, &s, 24, nullptr, nullptr), j.joined, &result), TF_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace millrace::capi
