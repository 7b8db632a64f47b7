// SPDX-License-Identifier: Apache-2.0
// Which kernel serves an op on a device type for given attribute types. Filled by plain calls, e.g.
//
//   void RegisterArrayKernels(KernelRegistry& r) {
//     r.Add<PadKernel>({.op = "Pad", .types = {{"T", Types("NUM|bool")}, {"Tpaddings", Types("IDX")}}});
//     r.AddFn({.op = "Rank"}, [](KernelContext& c) -> Status { ... });
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernel/kernel.h"
#include "op/op_cost.h"

namespace millrace {

struct KernelSpec {
  std::string op;
  std::string device = "CPU";
  // Type attributes and the values served; attributes not named: any.
  std::vector<std::pair<std::string, std::vector<DType>>> types;
  std::string label;  // served only when the node asks with attribute _kernel
  int priority = 0;
  CostFunction cost = ElementCost;
};

using KernelFactory = std::function<std::unique_ptr<Kernel>()>;

class KernelRegistry {
 public:
  void AddFactory(KernelSpec spec, KernelFactory factory);
  // K is default-constructible; its Init reads the attributes.
  template <typename K>
  void Add(KernelSpec spec) {
    AddFactory(std::move(spec), [] { return std::make_unique<K>(); });
  }
  // A kernel without attributes.
  using Fn = Status (*)(KernelContext&);
  void AddFn(KernelSpec spec, Fn fn);

  // Makes and inits. Unimplemented when the op has no kernel on this device type, or none for these types (the message
  // lists what is there).
  StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) const;
  // Whether Create would find a factory.
  bool Has(const OpDef& op, const AttrMap& attrs, absl::string_view device_type) const;
  bool HasAny(absl::string_view op) const;
  // The estimate of the kernel that Create would make, or of one for another device. ElementCost: there is none.
  CostFunction CostOf(const OpDef& op, const AttrMap& attrs, absl::string_view device_type) const;
  std::vector<KernelSpec> SpecsFor(absl::string_view op) const;
  std::vector<KernelSpec> All() const;

 private:
  struct Entry {
    KernelSpec spec;
    KernelFactory factory;
  };
  const Entry* Select(absl::string_view op, const AttrMap& attrs, absl::string_view device_type) const;
  absl::flat_hash_map<std::string, std::vector<Entry>> entries_;
};

}  // namespace millrace
