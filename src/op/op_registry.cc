// SPDX-License-Identifier: Apache-2.0
#include "op/op_registry.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"

namespace millrace {
namespace {

// Guards the tables of all registries: libraries add ops while others look theirs up. Declarations stay where they are
// and do not change once they are found.
ABSL_CONST_INIT absl::Mutex tables_mu(absl::kConstInit);

// What the notation says already.
OpTraits ImpliedBy(const OpDef& op) {
  OpTraits traits;
  if (absl::StartsWith(op.name, "_")) traits.Add(OpTrait::kInternal);
  if (op.inputs.empty()) return traits;
  const ArgDef& first = op.inputs.front();
  const bool is_handle = first.type == DType::kResource && op.outputs.empty();
  if (first.is_ref || is_handle) traits.Add(OpTrait::kUpdatesVariable);
  return traits;
}

}  // namespace

OpDeclaration OpRegistry::Add(absl::string_view schema) {
  auto op = ParseSchema(schema);
  absl::MutexLock lock(&tables_mu);
  if (!op.ok()) {
    status_.Update(op.status());
    ops_.emplace_back();  // absorbs the rest of the declaration, never found
    return OpDeclaration(&ops_.back(), &traits_[&ops_.back()]);
  }
  ops_.push_back(*std::move(op));
  OpDef* def = &ops_.back();
  if (!by_name_.emplace(def->name, def).second) status_.Update(AlreadyExists("op ", def->name, " is declared twice"));
  OpTraits& traits = traits_[def];
  traits = ImpliedBy(*def);
  return OpDeclaration(def, &traits);
}

Status OpRegistry::AddDef(OpDef def) {
  absl::MutexLock lock(&tables_mu);
  if (by_name_.contains(def.name)) return AlreadyExists("op ", def.name, " is declared twice");
  ops_.push_back(std::move(def));
  by_name_.emplace(ops_.back().name, &ops_.back());
  traits_[&ops_.back()] = ImpliedBy(ops_.back());
  return absl::OkStatus();
}

const OpDef* OpRegistry::Find(absl::string_view name) const {
  absl::ReaderMutexLock lock(&tables_mu);
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

OpTraits OpRegistry::TraitsOf(const OpDef& op) const {
  absl::ReaderMutexLock lock(&tables_mu);
  const auto it = traits_.find(&op);
  return it == traits_.end() ? OpTraits() : it->second;
}

std::vector<const OpDef*> OpRegistry::All() const {
  absl::ReaderMutexLock lock(&tables_mu);
  std::vector<const OpDef*> out;
  out.reserve(by_name_.size());
  for (const auto& [name, def] : by_name_) out.push_back(def);
  std::sort(out.begin(), out.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return out;
}

}  // namespace millrace
