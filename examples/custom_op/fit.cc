// SPDX-License-Identifier: Apache-2.0
// Fits a line by the loss LogCosh, which a few wild points hardly move.
//   fit log_cosh.so
#include <cmath>
#include <cstdio>
#include <vector>

#define MILLRACE_EXCEPTIONS 1
#include "millrace/millrace.h"

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: fit LIBRARY\n"), 2;
  TF_Status* status = TF_NewStatus();
  MR_LoadPlugin(argv[1], status);
  if (TF_GetCode(status) != TF_OK) return std::fprintf(stderr, "%s\n", TF_Message(status)), 1;
  TF_DeleteStatus(status);

  constexpr int kPoints = 100;
  std::vector<float> xs, ys;
  for (int i = 0; i < kPoints; ++i) {
    xs.push_back(static_cast<float>(i) / kPoints);
    ys.push_back(i % 20 == 7 ? 100.0f : 3 * xs.back() - 1);  // one in twenty is wild
  }
  millrace::Graph graph;
  millrace::Scope scope(graph);
  const auto x = scope.Const(millrace::Tensor::Of<float>({kPoints}, xs));
  const auto y = scope.Const(millrace::Tensor::Of<float>({kPoints}, ys));
  const auto line = scope.Placeholder(millrace::DType::kFloat, {2});  // slope and offset
  const auto slope =
      scope.Op("StridedSlice", {line, millrace::Tensor({0}), millrace::Tensor({1}), millrace::Tensor({1})},
               {{"shrink_axis_mask", 1}});
  const auto offset =
      scope.Op("StridedSlice", {line, millrace::Tensor({1}), millrace::Tensor({2}), millrace::Tensor({1})},
               {{"shrink_axis_mask", 1}});
  const auto error = scope.Op("Sub", {scope.Op("AddV2", {scope.Op("Mul", {x, slope}), offset}), y});
  const auto loss = scope.Op("Sum", {scope.Op("LogCosh", {error}), millrace::Tensor({0})});
  const millrace::Output gradient = graph.Gradients({loss}, {line})[0];

  const millrace::Session session(graph);
  std::vector<float> at = {0, 0};
  for (int step = 0; step < 5000; ++step) {
    const auto out = session.Run({{line, millrace::Tensor::Of<float>({2}, at)}}, {gradient});
    for (size_t i = 0; i < 2; ++i) at[i] -= 0.005f * out[0].data<float>()[i];
  }
  std::printf("y = %.2f x %+.2f\n", at[0], at[1]);
  return std::abs(at[0] - 3) < 0.2f && std::abs(at[1] + 1) < 0.2f ? 0 : 1;
} catch (const millrace::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
