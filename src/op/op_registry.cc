// SPDX-License-Identifier: Apache-2.0
#include "op/op_registry.h"

#include <algorithm>

#include "absl/synchronization/mutex.h"

namespace millrace {
namespace {

// Guards the tables of all registries: libraries add ops while others look theirs up. Declarations stay where they are
// and do not change once they are found.
ABSL_CONST_INIT absl::Mutex tables_mu(absl::kConstInit);

}  // namespace

OpDeclaration OpRegistry::Add(absl::string_view schema) {
  auto op = ParseSchema(schema);
  absl::MutexLock lock(&tables_mu);
  if (!op.ok()) {
    status_.Update(op.status());
    ops_.emplace_back();  // absorbs the rest of the declaration, never found
    return OpDeclaration(&ops_.back());
  }
  ops_.push_back(*std::move(op));
  OpDef* def = &ops_.back();
  if (!by_name_.emplace(def->name, def).second) status_.Update(AlreadyExists("op ", def->name, " is declared twice"));
  return OpDeclaration(def);
}

Status OpRegistry::AddDef(OpDef def) {
  absl::MutexLock lock(&tables_mu);
  if (by_name_.contains(def.name)) return AlreadyExists("op ", def.name, " is declared twice");
  ops_.push_back(std::move(def));
  by_name_.emplace(ops_.back().name, &ops_.back());
  return absl::OkStatus();
}

const OpDef* OpRegistry::Find(absl::string_view name) const {
  absl::ReaderMutexLock lock(&tables_mu);
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
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
