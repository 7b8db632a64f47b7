// SPDX-License-Identifier: Apache-2.0
// Ops: optimizer updates. One row a rule; each row gives the dense and sparse forms, by reference and by handle.
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

struct Rule {
  const char* name;
  const char* slots;     // variables beside `var`
  const char* operands;  // after the variables, in order; "grad" and "delta" have var's shape, the rest are scalars
  const char* attrs;     // beside use_locking
  bool sparse;           // whether Sparse forms exist
  const char* doc;
  bool by_reference = true;  // else by handle only
};

constexpr Rule kRules[] = {
    {"GradientDescent", "", "alpha delta", "", false, "var -= alpha * delta."},
    {"Momentum", "accum", "lr grad momentum", "use_nesterov:bool=false", true,
     "accum = momentum * accum + grad; var -= lr * accum. With use_nesterov, var -= lr * (grad + momentum * accum) "
     "(Sutskever et al. 2013)."},
    {"Adagrad", "accum", "lr grad", "update_slots:bool=true", true,
     "accum += grad^2; var -= lr * grad / sqrt(accum) (Duchi et al. 2011)."},
    {"Adadelta", "accum accum_update", "lr rho epsilon grad", "", true,
     "accum = rho * accum + (1 - rho) * grad^2; update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad; "
     "accum_update = rho * accum_update + (1 - rho) * update^2; var -= lr * update (Zeiler 2012)."},
    {"Adam", "m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad", "use_nesterov:bool=false", false,
     "m += (1 - beta1) * (grad - m); v += (1 - beta2) * (grad^2 - v); var -= lr * sqrt(1 - beta2_power) / "
     "(1 - beta1_power) * m / (sqrt(v) + epsilon) (Kingma and Ba 2014, the form before section 2.1)."},
    {"AdaMax", "m v", "beta1_power lr beta1 beta2 epsilon grad", "", false,
     "m += (1 - beta1) * (grad - m); v = max(beta2 * v, |grad|); var -= lr / (1 - beta1_power) * m / (v + epsilon) "
     "(Kingma and Ba 2014, section 7.1)."},
    {"RMSProp", "ms mom", "lr rho momentum epsilon grad", "", true,
     "ms += (1 - rho) * (grad^2 - ms); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom."},
    {"CenteredRMSProp", "mg ms mom", "lr rho momentum epsilon grad", "", true,
     "Like RMSProp, with the gradient's running mean mg taken out: the divisor is sqrt(ms - mg^2 + epsilon)."},
    {"Ftrl", "accum linear", "grad lr l1 l2 lr_power", "", true,
     "Follow-the-regularised-leader (McMahan et al. 2013): accum_new = accum + grad^2; linear += grad - "
     "(accum_new^-lr_power - accum^-lr_power) / lr * var; var = (sign(linear) * l1 - linear) / (accum_new^-lr_power / "
     "lr "
     "+ 2 * l2) where |linear| > l1, else 0."},
    {"FtrlV2", "accum linear", "grad lr l1 l2 l2_shrinkage lr_power", "", true,
     "Like Ftrl; linear also grows by 2 * l2_shrinkage * var, which decays the variable without a part in accum."},
    {"AdagradV2", "accum", "lr epsilon grad", "update_slots:bool=true", true,
     "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon)."},
    {"AdagradDA", "gradient_accumulator gradient_squared_accumulator", "grad lr l1 l2 global_step", "", true,
     "Dual averaging (Duchi et al. 2011): the sums a and s of gradients and of their squares grow, and var = -lr * "
     "sign(a) "
     "* max(|a| - l1 * global_step, 0) / (l2 * global_step * lr + sqrt(s))."},
    {"ProximalAdagrad", "accum", "lr l1 l2 grad", "", true,
     "accum += grad^2; rate = lr / sqrt(accum); p = var - rate * grad; var = sign(p) * max(|p| - rate * l1, 0) / "
     "(1 + rate * l2) (Duchi and Singer 2009)."},
    {"ProximalGradientDescent", "", "alpha l1 l2 delta", "", true,
     "p = var - alpha * delta; var = sign(p) * max(|p| - alpha * l1, 0) / (1 + alpha * l2) (Duchi and Singer 2009)."},
    {"AddSign", "m", "lr alpha sign_decay beta grad", "", false,
     "m = beta * m + (1 - beta) * grad; var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad (Bello et al. "
     "2017)."},
    {"PowerSign", "m", "lr logbase sign_decay beta grad", "", false,
     "m = beta * m + (1 - beta) * grad; var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad (Bello et "
     "al. "
     "2017)."},
    {"AdamWithAmsgrad", "m v vhat", "beta1_power beta2_power lr beta1 beta2 epsilon grad", "", false,
     "Like Adam, with the largest v so far, vhat, in its place (Reddi et al. 2018).", false},
    {"KerasMomentum", "accum", "lr grad momentum", "use_nesterov:bool=false", true,
     "accum = momentum * accum - lr * grad; var += accum. With use_nesterov, var += momentum * accum - lr * grad.",
     false},
};

bool IsGradient(absl::string_view name) { return name == "grad" || name == "delta"; }

// Every operand that is no variable, gradient or index is a scalar; variables and gradient agree in shape (a sparse
// gradient has rows).
Status ApplyShape(ShapeContext& c) {
  PartialShape shape;
  bool by_handle = false;
  const std::vector<ArgDef>& args = c.op().inputs;
  const bool sparse = args.back().name == "indices" || c.op().name.find("Sparse") != std::string::npos;
  for (size_t k = 0; k < args.size(); ++k) {
    const int i = static_cast<int>(k);
    if (args[k].is_ref) {
      MR_ASSIGN_OR_RETURN(shape, c.Merge(shape, c.input(i), "variable and slots"));
    } else if (args[k].type == DType::kResource) {
      by_handle = true;
      MR_RETURN_IF_ERROR(c.RequireScalar(i));
      if (c.handle(i)) {
        MR_ASSIGN_OR_RETURN(shape, c.Merge(shape, c.handle(i)->shape, "variable and slots"));
      }
    } else if (IsGradient(args[k].name)) {
      if (!sparse) {
        MR_ASSIGN_OR_RETURN(shape, c.Merge(shape, c.input(i), "variable and gradient"));
      }
    } else if (args[k].name == "indices") {
      MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
    } else {
      MR_RETURN_IF_ERROR(c.RequireScalar(i));
    }
  }
  if (!by_handle) c.set_output(0, shape);
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const Rule& rule, bool by_handle, bool sparse) {
  std::vector<std::string> args = {by_handle ? "var:res" : "var:&T"};
  for (absl::string_view slot : absl::StrSplit(rule.slots, ' ', absl::SkipEmpty())) {
    args.push_back(absl::StrCat(slot, by_handle ? ":res" : ":&T"));
  }
  for (absl::string_view operand : absl::StrSplit(rule.operands, ' ')) {
    if (sparse && IsGradient(operand)) {
      args.insert(args.end(), {"grad:T", "indices:Tindices"});
    } else {
      args.push_back(absl::StrCat(operand, operand == "global_step" ? ":i64" : ":T"));
    }
  }
  std::vector<std::string> attrs = {"T in NUM"};
  if (sparse) attrs.push_back("Tindices in IDX");
  attrs.push_back("use_locking:bool=false");
  if (*rule.attrs) attrs.push_back(rule.attrs);
  std::string doc(rule.doc);
  if (sparse) doc += " Only the rows of var and slots named by indices change; row i of grad belongs to indices[i].";
  r.Add(absl::StrCat(
            by_handle ? "Resource" : "", sparse ? "Sparse" : "", "Apply", rule.name, "(", absl::StrJoin(args, ", "),
            ") -> (", by_handle ? "" : "out:&T", ") | ", absl::StrJoin(attrs, "; "), by_handle ? " | S" : ""))
      .Doc(doc)
      .Shape(ApplyShape)
      .NotDifferentiable("it changes state; an update is not differentiated")
      .NoExample("state");
}

}  // namespace

void RegisterTrainingOps(OpRegistry& registry) {
  for (const Rule& rule : kRules) {
    for (bool by_handle : {false, true}) {
      if (!by_handle && !rule.by_reference) continue;
      Declare(registry, rule, by_handle, false);
      if (rule.sparse) Declare(registry, rule, by_handle, true);
    }
  }
}

}  // namespace millrace
