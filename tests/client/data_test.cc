// SPDX-License-Identifier: Apache-2.0
// Functions and data sets of the C++ client. Compiled twice, as client_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "client_modes.h"
#include "millrace/data.h"
#include "millrace/session.h"

namespace {

using millrace::Dataset;
using millrace::DType;
using millrace::Function;
using millrace::Graph;
using millrace::Output;
using millrace::Outputs;
using millrace::Scope;
using millrace::Session;
using millrace::Tensor;

struct Reader {
  Graph graph;
  Scope s{graph};
  // The first tensors of the elements until the end, one after the other.
  template <typename T>
  std::vector<T> All(const Dataset& set, size_t most = 100) {
    const millrace::Iterator it = set.MakeIterator();
    const Session session(graph);
    std::vector<T> all;
    MUST(session.RunTargets({it.initializer}));
    std::vector<Tensor> element;
    while (all.size() < most) {
      const millrace::Status status = session.TryRun({}, {it.next[0]}, {}, &element);
      if (status.code() == TF_OUT_OF_RANGE) break;
      EXPECT_TRUE(status.ok()) << status.message();
      if (!status.ok()) break;
      for (const T& v : Value(element[0].values<T>())) all.push_back(v);
    }
    return all;
  }
};

CLIENT_TEST(FunctionsAreCalledAndDifferentiated) {
  Graph graph;
  Scope s(graph);
  const Function cube = Value(Function::Define("Cube", {{DType::kFloat}}, [](Scope f, const Outputs& x) {
    return f.Op("Mul", {f.Op("Mul", {x[0], x[0]}), x[0]});
  }));
  EXPECT_EQ(cube.name(), "Cube");
  MUST(cube.AddTo(graph));
  const Output x = s.Placeholder(DType::kFloat, {2});
  const Outputs y = cube.Call(s, {x});
  ASSERT_EQ(y.size(), 1u);
  const Outputs g = Value(graph.Gradients(y, {x}));
  const Session session(graph);
  const std::vector<Tensor> out = Value(session.Run({{x, {2.0f, 3.0f}}}, {y[0], g[0]}));
  EXPECT_EQ(Value(out[0].values<float>()), (std::vector<float>{8, 27}));
  EXPECT_EQ(Value(out[1].values<float>()), (std::vector<float>{12, 27}));
}

CLIENT_TEST(FunctionsMayStateTheirGradient) {
  Graph graph;
  Scope s(graph);
  const Function sign = Value(Function::Define(
      "StraightThrough", {{DType::kFloat}}, [](Scope f, const Outputs& x) { return f.Op("Sign", {x[0]}); }));
  const Function gradient =
      Value(Function::Define("StraightThroughGrad", {{DType::kFloat}, {DType::kFloat}}, [](Scope f, const Outputs& x) {
        return f.Op("Mul", {x[1], 5.0f});
      }));
  MUST(sign.AddTo(graph, gradient));
  const Output x = s.Placeholder(DType::kFloat, millrace::Shape{});
  const Outputs y = sign.Call(s, {x});
  const Outputs g = Value(graph.Gradients(y, {x}));
  ASSERT_TRUE(g[0]);
  const std::vector<Tensor> out = Value(Session(graph).Run({{x, -2.0f}}, {y[0], g[0]}));
  EXPECT_EQ(Value(out[0].scalar<float>()), -1);
  EXPECT_EQ(Value(out[1].scalar<float>()), 5);
}

CLIENT_TEST(FunctionsReadTheirArgumentsAlone) {
  Graph graph;
  Scope s(graph);
  const Output outside = s.Const(1.0f);
  EXPECT_NE(CodeOf([&] {
              return Function::Define("Reaches", {{DType::kFloat}}, [&](Scope f, const Outputs& x) {
                return f.Op("Add", {x[0], outside});
              });
            }),
            TF_OK);
  EXPECT_EQ(CodeOf([] { return Function::Define("Nothing", {}, [](const Scope&) { return Outputs{Output()}; }); }),
            TF_INVALID_ARGUMENT);
}

CLIENT_TEST(DataSetsMapFilterAndBatch) {
  Reader r;
  const Dataset odd_squares =
      Dataset::Range(r.s, 0, 10)
          .Filter([](Scope s, const Outputs& e) {
            return s.Op("Equal", {s.Op("FloorMod", {e[0], int64_t{2}}), int64_t{1}});
          })
          .Map([](Scope s, const Outputs& e) { return s.Op("Mul", {e[0], e[0]}); });
  EXPECT_EQ(r.All<int64_t>(odd_squares), (std::vector<int64_t>{1, 9, 25, 49, 81}));
  const Dataset batches = odd_squares.Batch(2);
  EXPECT_EQ(batches.elements()[0].shape, (millrace::Shape{-1}));
  EXPECT_EQ(r.All<int64_t>(batches), (std::vector<int64_t>{1, 9, 25, 49, 81}));
  EXPECT_EQ(r.All<int64_t>(odd_squares.Batch(2, true).Skip(1)), (std::vector<int64_t>{25, 49}));
  EXPECT_EQ(r.All<int64_t>(odd_squares.Take(2).Repeat(2)), (std::vector<int64_t>{1, 9, 1, 9}));
  EXPECT_EQ(
      r.All<int64_t>(odd_squares.Take(1).Concatenate(odd_squares.Skip(4)).Prefetch(1)), (std::vector<int64_t>{1, 81}));
  EXPECT_EQ(r.All<int64_t>(odd_squares.Repeat(), 7).size(), 7u);
}

CLIENT_TEST(DataSetsOfTensorsAreShuffledByASeed) {
  Reader r;
  const Output values = r.s.Const({1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
  const Output names = r.s.Const(Tensor::Strings({8}, {"a", "b", "c", "d", "e", "f", "g", "h"}));
  const Dataset pairs = Dataset::FromTensorSlices(r.s, {values, names});
  ASSERT_EQ(pairs.elements().size(), 2u);
  EXPECT_EQ(pairs.elements()[1].dtype, DType::kString);
  EXPECT_EQ(pairs.elements()[0].shape, millrace::Shape{});
  const std::vector<float> order = r.All<float>(pairs.Shuffle(8, 3)), again = r.All<float>(pairs.Shuffle(8, 3));
  EXPECT_EQ(order, again);
  const std::vector<float> sorted = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_NE(order, sorted);
  EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), sorted.begin(), sorted.end()));
  const Dataset both =
      Dataset::Zip({pairs, Dataset::Range(r.s, 0, 3)})
          .Map([](Scope s,
                  const Outputs& e) { return s.Op("Mul", {e[0], s.Op("Cast", {e[2]}, {{"DstT", DType::kFloat}})}); },
               2);
  EXPECT_EQ(r.All<float>(both), (std::vector<float>{0, 2, 6}));
}

CLIENT_TEST(DataSetsOfFiles) {
  Reader r;
  const std::string path = testing::TempDir() + "client_data_lines_" + std::to_string(MILLRACE_EXCEPTIONS);
  std::ofstream(path) << "3\n4\n5\n";
  const Dataset numbers = Dataset::TextLine(r.s, {path}).Map([](Scope s, const Outputs& e) {
    return s.Op("StringToNumber", {e[0]}, {{"out_type", DType::kInt32}});
  });
  EXPECT_EQ(r.All<int32_t>(numbers), (std::vector<int32_t>{3, 4, 5}));
#if MILLRACE_EXCEPTIONS
  EXPECT_THROW(numbers.Filter([](Scope s, const Outputs&) { return s.Op("NoSuchOp", {}); }), millrace::Error);
#else
  EXPECT_FALSE(numbers.Filter([](Scope s, const Outputs&) { return s.Op("NoSuchOp", {}); }).handle());
  EXPECT_FALSE(r.s.status().ok());
#endif
}

}  // namespace
