// SPDX-License-Identifier: Apache-2.0
// Values of ops that run at once.
#include "capi/eager.h"

using millrace::InvalidArgument;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::GuardedOr;

struct TFE_TensorDebugInfo {
  millrace::Shape shape;
};

namespace {

constexpr char kHost[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// get(tensor) -> StatusOr<T>
template <typename T, typename Get>
T Ask(TFE_TensorHandle* h, T fallback, TF_Status* status, Get&& get) {
  return GuardedOr<T>(status, fallback, [&]() -> StatusOr<T> {
    MR_CAPI_REQUIRE(h);
    return get(h->tensor);
  });
}

}  // namespace

extern "C" {

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  return GuardedOr<TFE_TensorHandle*>(status, nullptr, [&]() -> StatusOr<TFE_TensorHandle*> {
    MR_CAPI_REQUIRE(t);
    MR_ASSIGN_OR_RETURN(millrace::Tensor value, millrace::capi::FeedValue(t));
    return new TFE_TensorHandle{std::move(value), kHost};
  });
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) { delete h; }

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) {
  return static_cast<TF_DataType>(h ? h->tensor.dtype() : millrace::DType::kInvalid);
}

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<int>(h, -1, status, [](const millrace::Tensor& t) { return t.rank(); });
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<int64_t>(h, -1, status, [](const millrace::Tensor& t) { return t.num_elements(); });
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  return Ask<int64_t>(h, -1, status, [&](const millrace::Tensor& t) -> StatusOr<int64_t> {
    if (dim_index >= 0 && dim_index < t.rank()) return t.dim(dim_index);
    return InvalidArgument("there is no dimension ", dim_index, " of a tensor of shape ", t.shape().ToString());
  });
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<const char*>(h, nullptr, status, [&](const millrace::Tensor&) { return h->device.c_str(); });
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  return TFE_TensorHandleDeviceName(h, status);
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<TFE_TensorHandle*>(h, nullptr, status, [&](const millrace::Tensor&) { return new TFE_TensorHandle(*h); });
}

TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<TF_Tensor*>(h, nullptr, status, [](const millrace::Tensor& t) { return new TF_Tensor{t}; });
}

TFE_TensorHandle* TFE_TensorHandleCopyToDevice(TFE_TensorHandle* h, TFE_Context* ctx, const char* device_name,
                                               TF_Status* status) {
  return Ask<TFE_TensorHandle*>(h, nullptr, status, [&](const millrace::Tensor& t) -> StatusOr<TFE_TensorHandle*> {
    MR_CAPI_REQUIRE(ctx);
    MR_ASSIGN_OR_RETURN(std::string device, ctx->FindDevice(device_name ? device_name : ""));
    return new TFE_TensorHandle{t, std::move(device)};
  });
}

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  return Ask<TFE_TensorDebugInfo*>(
      h, nullptr, status, [](const millrace::Tensor& t) { return new TFE_TensorDebugInfo{t.shape()}; });
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) { delete debug_info; }

int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) {
  return debug_info ? debug_info->shape.rank() : -1;
}

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) {
  if (debug_info == nullptr || dim_index < 0 || dim_index >= debug_info->shape.rank()) return -1;
  return debug_info->shape.dim(dim_index);
}

}  // extern "C"
