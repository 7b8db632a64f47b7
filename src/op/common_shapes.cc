// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "op/shape_context.h"

namespace millrace {

Status ScalarShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::Scalar());
  return absl::OkStatus();
}

Status UnknownShape(ShapeContext&) { return absl::OkStatus(); }

Status NoOutputs(ShapeContext&) { return absl::OkStatus(); }

Status UnchangedShape(ShapeContext& c) {
  if (c.num_inputs() == 0) return absl::OkStatus();
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, c.input(0));
    if (c.handle(0)) c.set_output_handle(i, *c.handle(0));
  }
  return absl::OkStatus();
}

PartialShape BroadcastPartial(const PartialShape& a, const PartialShape& b, bool* incompatible) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a.dim(ia), db = ib < 0 ? 1 : b.dim(ib);
    int64_t d;
    if (da == 1 || db == 1) {
      d = da == 1 ? db : da;
    } else if (da < 0 || db < 0) {
      d = std::max(da, db);  // the unknown one is 1 or this
    } else if (da == db) {
      d = da;
    } else {
      *incompatible = true;
      return PartialShape();
    }
    dims[static_cast<size_t>(i)] = d;
  }
  return PartialShape::Of(std::move(dims));
}

Status BroadcastShape(ShapeContext& c) {
  bool incompatible = false;
  PartialShape out = BroadcastPartial(c.input(0), c.input(1), &incompatible);
  if (incompatible) {
    return InvalidArgument("Dimensions must be equal or 1 to broadcast, but the shapes are ", c.input(0).ToString(),
                           " and ", c.input(1).ToString());
  }
  // The product of known dimensions may be too large for any step.
  MR_ASSIGN_OR_RETURN(out, out.has_rank() ? PartialShape::Make(out.dims()) : StatusOr<PartialShape>(out));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status MergedShape(ShapeContext& c) {
  PartialShape out;
  for (int i = 0; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(out, c.Merge(out, c.input(i), "inputs"));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

}  // namespace millrace
