// SPDX-License-Identifier: Apache-2.0
// CPU kernels: tensors that a session keeps between steps under handles.
#include <atomic>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/state/session_tensors.h"

namespace millrace {
namespace {

constexpr char kContainer[] = "session tensors";

class SessionTensor final : public Resource {
 public:
  explicit SessionTensor(Tensor value) : value_(std::move(value)) {}
  const Tensor& value() const { return value_; }
  std::string DebugString() const override { return absl::StrCat("a session's ", value_.DebugString()); }

 private:
  const Tensor value_;
};

// "<node>;<number>;<device>": clients read the device out of it.
std::string NewHandle(const KernelContext& ctx) {
  static std::atomic<int64_t> next{0};
  return absl::StrCat(ctx.node_name(), ";", next.fetch_add(1), ";", ctx.device().name());
}

Status GetSessionHandle(KernelContext& ctx) {
  const std::string handle = NewHandle(ctx);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  RefPtr<SessionTensor> kept = MakeRef<SessionTensor>(ctx.input(0));
  MR_RETURN_IF_ERROR(ctx.resources().Create<SessionTensor>(kContainer, handle, kept));
  if (out->dtype() == DType::kString) {
    *out->mutable_data<TString>() = handle;
  } else {
    ResourceHandle& h = *out->mutable_data<ResourceHandle>();
    h.device = ctx.device().name();
    h.container = kContainer;
    h.name = handle;
    h.type_name = "SessionTensor";
    h.resource = std::move(kept);
  }
  return absl::OkStatus();
}

Status NoSuchTensor(absl::string_view handle) {
  return InvalidArgument("The tensor with handle '", handle, "' is not in the session store.");
}

Status GetSessionTensor(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireScalar("handle", ctx.input(0)));
  const std::string handle = ctx.input(0).data<TString>()->str();
  const auto found = ctx.resources().Lookup<SessionTensor>(kContainer, handle);
  if (!found.ok()) return NoSuchTensor(handle);
  const Tensor& value = (*found)->value();
  if (value.dtype() != ctx.output_dtype(0)) {
    return InvalidArgument("The tensor with handle '", handle, "' is ", DTypeName(value.dtype()), ", it is read as ",
                           DTypeName(ctx.output_dtype(0)));
  }
  ctx.set_output(0, value);
  return absl::OkStatus();
}

Status DeleteSessionTensor(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireScalar("handle", ctx.input(0)));
  const std::string handle = ctx.input(0).data<TString>()->str();
  return ctx.resources().Delete<SessionTensor>(kContainer, handle).ok() ? absl::OkStatus() : NoSuchTensor(handle);
}

}  // namespace

void RegisterSessionTensorKernels(KernelRegistry& r) {
  r.AddFn({.op = "GetSessionHandle"}, GetSessionHandle);
  r.AddFn({.op = "GetSessionHandleV2"}, GetSessionHandle);
  r.AddFn({.op = "GetSessionTensor"}, GetSessionTensor);
  r.AddFn({.op = "DeleteSessionTensor"}, DeleteSessionTensor);
}

}  // namespace millrace
