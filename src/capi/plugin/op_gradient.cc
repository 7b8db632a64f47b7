// SPDX-License-Identifier: Apache-2.0
// Gradients in C. The function sees the graph that is being differentiated as a TF_Graph of its own: whoever asked for
// gradients holds the graph's lock or owns it alone, so this TF_Graph comes with a lock that is free.
#include "capi/gradient_values.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/registration.h"

namespace millrace::capi {

Status PluginGradient(GradContext& c) {
  const PluginOp* op = FindPluginOp(c.node()->op_name());
  if (op == nullptr || op->gradient == nullptr)
    return Internal("op ", c.node()->op_name(), " has no gradient function");
  const size_t num_inputs = static_cast<size_t>(c.num_inputs());
  std::vector<MR_Gradient> dys, dxs(num_inputs, kNoGradient);
  for (int i = 0; i < c.num_outputs(); ++i) {
    const DType t = BaseType(c.node()->output_type(i));
    const bool has_zeros = IsPlain(t);
    dys.push_back(c.has_dy(i) || has_zeros ? GradientToC(Gradient{c.dy(i), {}}) : kNoGradient);
  }
  MR_RETURN_IF_ERROR(c.status());
  TF_Graph graph{MakeRef<SharedGraph>(&c.b().graph())};
  const std::string name = c.b().scope();
  const MR_Scope scope = {name.c_str(), nullptr, nullptr, nullptr, 0};
  TF_Status status;
  const Status thrown = CallForeign([&] {
    op->gradient(op->gradient_data, &graph, &scope, AsOperation(c.node()), dys.data(), c.num_outputs(), dxs.data(),
                 c.num_inputs(), &status);
  });
  const std::string where = absl::StrCat("gradient of ", c.node()->Describe(), ": ");
  MR_RETURN_IF_ERROR(Annotate(thrown, where));
  MR_RETURN_IF_ERROR(Annotate(FromStatus(status), where));
  if (!graph.shared->HasOneRef()) {
    return FailedPrecondition(where, "an operation, loop or branch that was begun in the graph has not been finished");
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    MR_ASSIGN_OR_RETURN(const Gradient g, GradientFromC(dxs[i], static_cast<int>(i)));
    if (g.dense) c.set_dx(static_cast<int>(i), g.dense);
    if (g.sparse) c.set_dx(static_cast<int>(i), *g.sparse);
  }
  return c.status();
}

}  // namespace millrace::capi
