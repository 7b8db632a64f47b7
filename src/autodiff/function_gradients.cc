// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward_walk.h"

namespace millrace {

Status CallGradientFunction(const std::string& gradient, GradContext& c) {
  AttrMap attrs = c.node()->attrs();
  if (auto f = c.Attr<FuncAttr>("f"); f.ok()) attrs = f->attrs;
  std::erase_if(attrs, [](const auto& attr) { return attr.first.starts_with("_"); });
  std::vector<Arg> inputs(c.node()->inputs().begin(), c.node()->inputs().end());
  for (int i = 0; i < c.num_outputs(); ++i) inputs.emplace_back(c.dy(i));
  Node* call = c.b().OpNode(gradient, std::move(inputs), std::move(attrs));
  MR_RETURN_IF_ERROR(c.status());
  if (call->num_outputs() != c.num_inputs()) {
    return InvalidArgument(
        "gradient function '", gradient, "' has ", call->num_outputs(), " outputs, wanted ", c.num_inputs());
  }
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, call->output(i));
  return absl::OkStatus();
}

// Called for calls within calls: the depth of the recursion is limited.
StatusOr<std::vector<Output>> AddDenseGradients(const GraphBuilder& builder, const std::vector<Output>& ys,
                                                const std::vector<Output>& xs, const std::vector<Output>& grad_ys) {
  constexpr int kMaxDepth = 64;
  thread_local int depth = 0;
  if (depth >= kMaxDepth) return InvalidArgument("gradients of gradients of functions, more than ", kMaxDepth, " deep");
  ++depth;
  auto gradients = AddGradients(builder, ys, xs, grad_ys);
  --depth;
  MR_RETURN_IF_ERROR(gradients.status());
  std::vector<Output> dense;
  for (const Gradient& g : *gradients) dense.push_back(g.sparse ? Densify(builder, *g.sparse) : g.dense);
  MR_RETURN_IF_ERROR(builder.status());
  return dense;
}

}  // namespace millrace
