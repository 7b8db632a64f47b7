// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

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

namespace {

// The first two dimensions that cannot be broadcast against each other; shapes that have none give the last ones.
std::pair<int64_t, int64_t> FirstUnequal(const PartialShape& a, const PartialShape& b) {
  std::pair<int64_t, int64_t> found;
  const int rank = std::min(a.rank(), b.rank());
  for (int i = 0; i < rank; ++i) {
    found = {a.dim(a.rank() - rank + i), b.dim(b.rank() - rank + i)};
    const bool known = found.first >= 0 && found.second >= 0, fits = found.first == 1 || found.second == 1;
    if (known && !fits && found.first != found.second) break;
  }
  return found;
}

}  // namespace

Status BroadcastShape(ShapeContext& c) {
  bool incompatible = false;
  PartialShape out = BroadcastPartial(c.input(0), c.input(1), &incompatible);
  if (incompatible) {
    const auto [a, b] = FirstUnequal(c.input(0), c.input(1));
    return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
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
