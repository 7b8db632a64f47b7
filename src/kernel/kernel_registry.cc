// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel_registry.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/exceptions.h"

namespace millrace {
namespace {

// Guards the tables of all registries: libraries add kernels while others make theirs. Never held while a kernel is
// made.
ABSL_CONST_INIT absl::Mutex tables_mu(absl::kConstInit);

class FnKernel : public Kernel {
 public:
  explicit FnKernel(KernelRegistry::Fn fn) : fn_(fn) {}
  Status Compute(KernelContext& ctx) override { return fn_(ctx); }

 private:
  KernelRegistry::Fn fn_;
};

bool Serves(const KernelSpec& spec, const AttrMap& attrs) {
  for (const auto& [name, types] : spec.types) {
    auto it = attrs.find(name);
    if (it == attrs.end()) return false;
    auto served = [&types = types](DType t) { return std::find(types.begin(), types.end(), t) != types.end(); };
    if (const DType* t = it->second.get<DType>()) {
      if (!served(*t)) return false;
    } else if (const auto* list = it->second.get<std::vector<DType>>()) {
      if (!std::all_of(list->begin(), list->end(), served)) return false;
    }
  }
  return true;
}

std::string DescribeTypes(const AttrMap& attrs) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : attrs) {
    if (const DType* t = value.get<DType>()) parts.push_back(absl::StrCat(name, "=", DTypeName(*t)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string DescribeSpec(const KernelSpec& spec) {
  std::vector<std::string> parts;
  for (const auto& [name, types] : spec.types) {
    parts.push_back(absl::StrCat(
        name, " in [", absl::StrJoin(types, " ", [](std::string* out, DType t) { *out += DTypeName(t); }), "]"));
  }
  return absl::StrCat(spec.device, "(", absl::StrJoin(parts, "; "), ")");
}

}  // namespace

void KernelRegistry::AddFactory(KernelSpec spec, KernelFactory factory) {
  absl::MutexLock lock(&tables_mu);
  std::vector<Entry>& list = entries_[spec.op];
  list.push_back({std::move(spec), std::move(factory)});
}

void KernelRegistry::AddFn(KernelSpec spec, Fn fn) {
  AddFactory(std::move(spec), [fn] { return std::make_unique<FnKernel>(fn); });
}

const KernelRegistry::Entry* KernelRegistry::Select(absl::string_view op, const AttrMap& attrs,
                                                    absl::string_view device_type) const {
  auto it = entries_.find(op);
  if (it == entries_.end()) return nullptr;
  std::string label;
  if (auto l = attrs.find("_kernel"); l != attrs.end()) {
    if (const std::string* s = l->second.get<std::string>()) label = *s;
  }
  const Entry* best = nullptr;
  for (const Entry& e : it->second) {
    if (e.spec.device != device_type || e.spec.label != label || !Serves(e.spec, attrs)) continue;
    if (!best || e.spec.priority > best->spec.priority) best = &e;
  }
  return best;
}

StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(const KernelInit& init) const {
  KernelFactory factory;
  {
    absl::ReaderMutexLock lock(&tables_mu);
    if (const Entry* entry = Select(init.op.name, init.attrs, init.device.type())) factory = entry->factory;
  }
  if (!factory) {
    absl::ReaderMutexLock lock(&tables_mu);
    auto it = entries_.find(init.op.name);
    if (it == entries_.end()) {
      return Unimplemented("op ", init.op.name, " of node '", init.node_name, "' has no kernel");
    }
    return Unimplemented(
        "op ", init.op.name, " of node '", init.node_name, "' has no ", init.device.type(), " kernel for ",
        DescribeTypes(init.attrs), "; there are: ",
        absl::StrJoin(it->second, ", ", [](std::string* out, const Entry& e) { *out += DescribeSpec(e.spec); }));
  }
  return WithoutExceptions([&]() -> StatusOr<std::unique_ptr<Kernel>> {
    std::unique_ptr<Kernel> kernel = factory();
    MR_RETURN_IF_ERROR(kernel->Init(init));
    return kernel;
  });
}

bool KernelRegistry::Has(const OpDef& op, const AttrMap& attrs, absl::string_view device_type) const {
  absl::ReaderMutexLock lock(&tables_mu);
  return Select(op.name, attrs, device_type) != nullptr;
}

CostFunction KernelRegistry::CostOf(const OpDef& op, const AttrMap& attrs, absl::string_view device_type) const {
  absl::ReaderMutexLock lock(&tables_mu);
  for (const absl::string_view type : {device_type, absl::string_view("CPU")}) {
    const Entry* const entry = Select(op.name, attrs, type);
    if (entry != nullptr && entry->spec.cost != nullptr) return entry->spec.cost;
  }
  return &ElementCost;
}

bool KernelRegistry::HasAny(absl::string_view op) const {
  absl::ReaderMutexLock lock(&tables_mu);
  return entries_.contains(op);
}

std::vector<KernelSpec> KernelRegistry::SpecsFor(absl::string_view op) const {
  absl::ReaderMutexLock lock(&tables_mu);
  std::vector<KernelSpec> specs;
  if (auto it = entries_.find(op); it != entries_.end()) {
    for (const Entry& e : it->second) specs.push_back(e.spec);
  }
  return specs;
}

std::vector<KernelSpec> KernelRegistry::All() const {
  absl::ReaderMutexLock lock(&tables_mu);
  std::vector<KernelSpec> specs;
  for (const auto& [op, list] : entries_) {
    for (const Entry& e : list) specs.push_back(e.spec);
  }
  std::sort(specs.begin(), specs.end(), [](const KernelSpec& a, const KernelSpec& b) { return a.op < b.op; });
  return specs;
}

}  // namespace millrace
