// SPDX-License-Identifier: Apache-2.0
// Ops of several families, by the installed headers; says how many bytes of op declarations the library has, so that
// two forms of it can be compared.
#include <cstdio>

#include "millrace/millrace.h"
#include "millrace/ops.h"

namespace ops = millrace::ops;
using millrace::Tensor;

int main() {
  millrace::Graph graph;
  millrace::Scope scope(graph);
  const Tensor square = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const auto product = ops::MatMul(scope, square, square);
  const auto halves = ops::Split(scope, 0, product, 2);
  const auto joined = ops::ConcatV2(scope, {halves[1], halves[0]}, 0);
  const auto sum = ops::Sum(scope, ops::Relu(scope, joined), Tensor({0, 1}));
  const auto image = ops::Reshape(scope, joined, Tensor({1, 2, 2, 1}));
  const auto conv = ops::Conv2D(scope, image, Tensor::Of<float>({1, 1, 1, 1}, {2}), {1, 1, 1, 1}, "SAME");
  const auto text = ops::StringJoin(scope, {scope.Const(Tensor("mill")), scope.Const(Tensor("race"))});
  const auto dropped = ops::Dropout(scope, conv, 0.0f);

  const auto out = millrace::Session(graph).Run({}, {sum, dropped, text});
  if (!out.ok()) {
    std::fprintf(stderr, "%s\n", out.status().message().c_str());
    return 1;
  }
  const auto total = (*out)[0].scalar<float>();
  const auto joined_text = (*out)[2].strings();
  if (!total.ok() || *total != 54.0f || !joined_text.ok() || (*joined_text)[0] != "millrace") return 1;
  TF_Buffer* declared = TF_GetAllOpList();
  std::printf("%zu\n", declared->length);
  TF_DeleteBuffer(declared);
  return 0;
}
