// SPDX-License-Identifier: Apache-2.0
// Ops: accumulators of gradients, with which workers that run side by side take one step together.
#include "op/shape_context.h"
#include "ops/dataflow/queue_ops.h"

namespace millrace {
namespace {

struct Form {
  const char* prefix;
  const char* handle;
  const char* flags;
};
constexpr Form kForms[] = {{"", "&str", ""}, {"Resource", "res", " | S"}};

// With its dtype and shape.
Status NewAccumulatorShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  c.set_output_handle(0, {dtype, std::move(shape)});
  return absl::OkStatus();
}

Status StepShape(ShapeContext& c) { return c.RequireScalar(1); }

Status TakeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  if (c.handle(0) && c.handle(0)->dtype == c.output_dtype(0)) c.set_output(0, c.handle(0)->shape);
  return absl::OkStatus();
}

Status SparseTakeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(0, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({-1}));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const std::string& schema, const char* doc, ShapeFn shape) {
  r.Add(schema)
      .Traits({OpTrait::kWaits})
      .Doc(doc)
      .Shape(shape)
      .NotDifferentiable("an accumulator is state")
      .NoExample("state");
}

constexpr char kAttrs[] =
    "dtype in NUM; shape:shape; container:string=\"\"; shared_name:string=\"\"; "
    "reduction_type in {MEAN,SUM}=\"MEAN\" | S";

void RegisterForm(OpRegistry& r, const Form& f) {
  const auto declare = [&](const char* name, const char* rest, const char* doc, ShapeFn shape) {
    Declare(r, absl::StrCat(f.prefix, name, "(handle:", f.handle, rest, f.flags), doc, shape);
  };
  Declare(r, absl::StrCat(f.prefix, "ConditionalAccumulator() -> (handle:", f.handle, ") | ", kAttrs),
          "Sums gradients, or takes their mean, until enough of them have come.", NewAccumulatorShape);
  declare("AccumulatorApplyGradient", ", local_step:i64, gradient:dtype) -> () | dtype in NUM",
          "Adds a gradient, unless `local_step` is less than the accumulator's global step: then it is stale, and "
          "dropped.",
          StepShape);
  declare("AccumulatorTakeGradient", ", num_required:i32) -> (average:dtype) | dtype in NUM",
          "The mean (or sum) of the gradients that have come; waits until there are `num_required`. The accumulator is "
          "empty then, and its global step one more.",
          TakeShape);
  declare("AccumulatorSetGlobalStep", ", new_global_step:i64) -> ()", "Sets the step before which gradients are stale.",
          StepShape);
  declare("AccumulatorNumAccumulated", ") -> (num_accumulated:i32)",
          "The number of gradients that have come since the last were taken.", ScalarShape);
}

}  // namespace

void RegisterAccumulatorOps(OpRegistry& r) {
  for (const Form& f : kForms) RegisterForm(r, f);
  Declare(r, absl::StrCat("SparseConditionalAccumulator() -> (handle:&str) | ", kAttrs),
          "A ConditionalAccumulator of slices: a gradient has some rows of the whole. The mean of a row is that of the "
          "gradients which had it.",
          NewAccumulatorShape);
  Declare(r,
          "SparseAccumulatorApplyGradient(handle:&str, local_step:i64, gradient_indices:i64, gradient_values:dtype, "
          "gradient_shape:i64) -> () | dtype in NUM; has_known_shape:bool",
          "Adds the rows of a gradient, unless it is stale, as AccumulatorApplyGradient. With `has_known_shape` the "
          "gradient's shape must be the accumulator's.",
          StepShape);
  Declare(r,
          "SparseAccumulatorTakeGradient(handle:&str, num_required:i32) -> (indices:i64, values:dtype, shape:i64) | "
          "dtype in NUM",
          "The rows that have come, in the order of their indices, as AccumulatorTakeGradient. The first dimension of "
          "`shape` is -1 where the accumulator does not know it.",
          SparseTakeShape);
}

}  // namespace millrace
