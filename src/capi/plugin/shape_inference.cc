// SPDX-License-Identifier: Apache-2.0
// Shape functions in C.
#include <algorithm>
#include <limits>

#include "capi/internal.h"
#include "capi/plugin/foreign.h"
#include "capi/plugin/registration.h"

using millrace::DType;
using millrace::InvalidArgument;
using millrace::kMaxRank;
using millrace::PartialShape;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::Guarded;
using millrace::capi::Try;

struct TF_ShapeHandle {
  PartialShape shape;
};
struct TF_DimensionHandle {
  int64_t value = -1;
};
struct TF_ShapeInferenceContext {
  millrace::ShapeContext& c;
};

namespace millrace::capi {

Status PluginShape(ShapeContext& c) {
  const PluginOp* op = FindPluginOp(c.op().name);
  if (op == nullptr || op->shape == nullptr) return absl::OkStatus();
  TF_ShapeInferenceContext context{c};
  TF_Status status;
  MR_RETURN_IF_ERROR(CallForeign([&] { op->shape(&context, &status); }));
  return FromStatus(status);
}

}  // namespace millrace::capi

namespace {

// Sets *result to what compute(shape of handle) gives.
template <typename Compute>
void Derive(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, TF_ShapeHandle* result, TF_Status* status,
            Compute&& compute) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(handle);
    MR_CAPI_REQUIRE(result);
    MR_ASSIGN_OR_RETURN(result->shape, compute(handle->shape));
    return absl::OkStatus();
  });
}

Status CheckRank(int64_t rank) {
  if (rank >= 0 && rank <= kMaxRank) return absl::OkStatus();
  return InvalidArgument("a rank of ", rank, " is not in [0, ", kMaxRank, "]");
}

// A position among `rank` dimensions, counted from the end when negative and cut to the rank.
StatusOr<int64_t> Position(int64_t at, int64_t rank, const char* what) {
  if (at > rank) return rank;
  if (at >= 0) return at;
  if (at < -rank) {
    return InvalidArgument("Subshape ", what, " out of bounds: ", at, ", for shape with rank ", rank);
  }
  return rank + at;
}

StatusOr<PartialShape> Subshape(const PartialShape& shape, int64_t start, int64_t end) {
  if (start == 0 && (end == std::numeric_limits<int64_t>::max() || (shape.has_rank() && end >= shape.rank()))) {
    return shape;
  }
  if (!shape.has_rank()) return PartialShape();
  const int64_t rank = shape.rank();
  MR_ASSIGN_OR_RETURN(const int64_t first, Position(start, rank, "start"));
  MR_ASSIGN_OR_RETURN(const int64_t last, Position(end, rank, "end"));
  if (first > last) {
    return InvalidArgument("Subshape must have computed start <= end, but is ", first, " and ", last,
                           " (computed from start ", start, " and end ", end, " over shape with rank ", rank, ")");
  }
  return PartialShape::Of({shape.dims().begin() + first, shape.dims().begin() + last});
}

}  // namespace

extern "C" {

TF_ShapeHandle* TF_NewShapeHandle(void) { return new (std::nothrow) TF_ShapeHandle(); }
void TF_DeleteShapeHandle(TF_ShapeHandle* handle) { delete handle; }
TF_DimensionHandle* TF_NewDimensionHandle(void) { return new (std::nothrow) TF_DimensionHandle(); }
void TF_DeleteDimensionHandle(TF_DimensionHandle* handle) { delete handle; }

int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* ctx) { return ctx ? ctx->c.num_inputs() : 0; }

void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(handle);
    if (i < 0 || i >= ctx->c.num_inputs()) return InvalidArgument("input index out of range");
    handle->shape = ctx->c.input(i);
    return absl::OkStatus();
  });
}

void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* ctx, int i, TF_ShapeHandle* handle,
                                       TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(handle);
    if (i < 0 || i >= ctx->c.num_outputs()) return InvalidArgument("output index out of range");
    ctx->c.set_output(i, handle->shape);
    return absl::OkStatus();
  });
}

TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext* ctx) {
  return Try<TF_ShapeHandle*>(
      nullptr, [&] { return ctx == nullptr ? nullptr : new TF_ShapeHandle{PartialShape::Scalar()}; });
}

TF_ShapeHandle* TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext* ctx, size_t size) {
  return Try<TF_ShapeHandle*>(nullptr, [&]() -> TF_ShapeHandle* {
    if (ctx == nullptr) return nullptr;
    const bool known = size <= static_cast<size_t>(std::numeric_limits<int64_t>::max());
    return new TF_ShapeHandle{PartialShape::Of({known ? static_cast<int64_t>(size) : -1})};
  });
}

void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext* ctx, const char* attr_name, TF_DataType* val,
                                          TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(attr_name);
    MR_CAPI_REQUIRE(val);
    MR_ASSIGN_OR_RETURN(const DType t, ctx->c.Attr<DType>(attr_name));
    *val = static_cast<TF_DataType>(t);
    return absl::OkStatus();
  });
}

int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle ? handle->shape.rank() : -1;
}
int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext*, TF_ShapeHandle* handle) {
  return handle != nullptr && handle->shape.has_rank() ? 1 : 0;
}

void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, int64_t rank,
                                      TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, handle, result, status, [&](const PartialShape& s) -> StatusOr<PartialShape> {
    MR_RETURN_IF_ERROR(CheckRank(rank));
    if (!s.has_rank()) return PartialShape::UnknownOfRank(static_cast<int>(rank));
    if (s.rank() == rank) return s;
    return InvalidArgument("Shape must be rank ", rank, " but is rank ", s.rank());
  });
}

void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, int64_t rank,
                                             TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, handle, result, status, [&](const PartialShape& s) -> StatusOr<PartialShape> {
    MR_RETURN_IF_ERROR(CheckRank(rank));
    if (!s.has_rank() || s.rank() >= rank) return s;
    return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", s.rank());
  });
}

void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* handle, int64_t rank,
                                            TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, handle, result, status, [&](const PartialShape& s) -> StatusOr<PartialShape> {
    MR_RETURN_IF_ERROR(CheckRank(rank));
    if (!s.has_rank() || s.rank() <= rank) return s;
    return InvalidArgument("Shape must be at most rank ", rank, " but is rank ", s.rank());
  });
}

void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext*, TF_ShapeHandle* shape_handle, int64_t i,
                                 TF_DimensionHandle* result) {
  if (result == nullptr) return;
  result->value = -1;
  if (shape_handle == nullptr || !shape_handle->shape.has_rank()) return;
  const int64_t rank = shape_handle->shape.rank();
  if (i < -rank || i >= rank) return;
  result->value = shape_handle->shape.dim(static_cast<int>(i < 0 ? i + rank : i));
}

void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* shape_handle, int64_t start,
                                      int64_t end, TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, shape_handle, result, status, [&](const PartialShape& s) { return Subshape(s, start, end); });
}

void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first,
                                               TF_ShapeHandle* second, TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, first, result, status, [&](const PartialShape& s) -> StatusOr<PartialShape> {
    MR_CAPI_REQUIRE(second);
    if (!s.has_rank() || !second->shape.has_rank()) return PartialShape();
    std::vector<int64_t> dims = s.dims();
    dims.insert(dims.end(), second->shape.dims().begin(), second->shape.dims().end());
    return PartialShape::Make(dims);
  });
}

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext* ctx, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    for (int i = 0; i < ctx->c.num_outputs(); ++i) ctx->c.set_output(i, PartialShape());
    return absl::OkStatus();
  });
}

int TF_DimensionHandleValueKnown(TF_DimensionHandle* dim_handle) {
  return dim_handle != nullptr && dim_handle->value >= 0 ? 1 : 0;
}
int64_t TF_DimensionHandleValue(TF_DimensionHandle* dim_handle) { return dim_handle ? dim_handle->value : -1; }

void MR_ShapeInferenceContextMakeShape(TF_ShapeInferenceContext* ctx, const int64_t* dims, int num_dims,
                                       TF_ShapeHandle* result, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(result);
    MR_ASSIGN_OR_RETURN(result->shape, millrace::capi::MakePartialShape(dims, num_dims));
    return absl::OkStatus();
  });
}

void MR_ShapeInferenceContextMerge(TF_ShapeInferenceContext* ctx, TF_ShapeHandle* first, TF_ShapeHandle* second,
                                   TF_ShapeHandle* result, TF_Status* status) {
  Derive(ctx, first, result, status, [&](const PartialShape& s) -> StatusOr<PartialShape> {
    MR_CAPI_REQUIRE(second);
    return ctx->c.Merge(s, second->shape, "arguments");
  });
}

void MR_ShapeInferenceContextGetAttrInt(TF_ShapeInferenceContext* ctx, const char* attr_name, int64_t* val,
                                        TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(ctx);
    MR_CAPI_REQUIRE(attr_name);
    MR_CAPI_REQUIRE(val);
    MR_ASSIGN_OR_RETURN(*val, ctx->c.Attr<int64_t>(attr_name));
    return absl::OkStatus();
  });
}

TF_Tensor* MR_ShapeInferenceContextInputValue(TF_ShapeInferenceContext* ctx, int i, TF_Status* status) {
  return millrace::capi::GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(ctx);
    if (i < 0 || i >= ctx->c.num_inputs()) return InvalidArgument("input index out of range");
    const millrace::Tensor* value = ctx->c.constant(i);
    return value == nullptr ? nullptr : new TF_Tensor{*value};
  });
}

}  // extern "C"
