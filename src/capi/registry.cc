// SPDX-License-Identifier: Apache-2.0
// What the library contains: ops and kernels.
#include "capi/internal.h"
#include "system/system.h"

using millrace::KernelSpec;
using millrace::StatusOr;
using millrace::capi::GuardedOr;

namespace {

millrace::wire::KernelDef KernelToProto(const KernelSpec& spec) {
  millrace::wire::KernelDef def;
  def.op = spec.op;
  def.device_type = spec.device;
  def.label = spec.label;
  def.priority = spec.priority;
  for (const auto& [attr, types] : spec.types) {
    millrace::wire::KernelAttrConstraint& constraint = def.constraint.emplace_back();
    constraint.name = attr;
    millrace::wire::AttrValue& allowed = constraint.allowed_values.Ensure();
    allowed.kind = millrace::wire::AttrValue::Kind::kList;
    for (millrace::DType t : types) allowed.list.Ensure().type.push_back(static_cast<int32_t>(t));
  }
  return def;
}

// An encoded KernelList: field 1, repeated KernelDef.
std::string EncodeKernels(const std::vector<KernelSpec>& specs) {
  std::string out;
  for (const KernelSpec& spec : specs) {
    const std::string bytes = millrace::wire::Encode(KernelToProto(spec));
    out.push_back('\x0a');
    size_t rest = bytes.size();
    for (; rest >= 0x80; rest >>= 7) out.push_back(static_cast<char>((rest & 0x7f) | 0x80));
    out.push_back(static_cast<char>(rest));
    out += bytes;
  }
  return out;
}

}  // namespace

extern "C" {

TF_Buffer* TF_GetAllOpList(void) {
  return GuardedOr<TF_Buffer*>(nullptr, nullptr, []() -> StatusOr<TF_Buffer*> {
    millrace::wire::OpList list;
    for (const millrace::OpDef* op : millrace::System::Default().ops().All()) {
      MR_ASSIGN_OR_RETURN(millrace::wire::OpDef def, millrace::OpDefToProto(*op));
      list.op.push_back(std::move(def));
    }
    return millrace::capi::MakeBuffer(millrace::wire::Encode(list));
  });
}

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  return GuardedOr<TF_Buffer*>(status, nullptr, []() -> StatusOr<TF_Buffer*> {
    return millrace::capi::MakeBuffer(EncodeKernels(millrace::System::Default().kernels().All()));
  });
}

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  return GuardedOr<TF_Buffer*>(status, nullptr, [&]() -> StatusOr<TF_Buffer*> {
    MR_CAPI_REQUIRE(name);
    return millrace::capi::MakeBuffer(EncodeKernels(millrace::System::Default().kernels().SpecsFor(name)));
  });
}

}  // extern "C"
