// SPDX-License-Identifier: Apache-2.0
// The ops of one System. Filled by plain calls at start (RegisterMathOps(registry)), then read-only; reading is
// thread-safe. A wrong declaration is not an abort: status() holds the first error.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "op/op_def.h"
#include "op/op_trait.h"

namespace millrace {

// Completes the declaration that Add began. Each method may be called once, Example several times.
class OpDeclaration {
 public:
  OpDeclaration& Doc(absl::string_view text) {
    def_->doc = std::string(text);
    return *this;
  }
  OpDeclaration& Shape(ShapeFn fn) {
    def_->shape_fn = fn;
    return *this;
  }
  OpDeclaration& Gradient(GradientFn fn) {
    def_->gradient_kind = GradientKind::kFunction;
    def_->gradient_fn = fn;
    return *this;
  }
  OpDeclaration& StructuralGradient() {
    def_->gradient_kind = GradientKind::kStructural;
    return *this;
  }
  // The gradient through this op is none, because ...
  OpDeclaration& NotDifferentiable(absl::string_view reason) {
    def_->gradient_kind = GradientKind::kNotDifferentiable;
    def_->gradient_reason = std::string(reason);
    return *this;
  }
  // Asking for a gradient through this op is an error, because ...
  OpDeclaration& NoGradient(absl::string_view reason) {
    def_->gradient_kind = GradientKind::kMissing;
    def_->gradient_reason = std::string(reason);
    return *this;
  }
  OpDeclaration& Traits(std::initializer_list<OpTrait> traits) {
    for (OpTrait t : traits) traits_->Add(t);
    return *this;
  }
  OpDeclaration& Example(absl::string_view text) {
    def_->examples.emplace_back(text);
    return *this;
  }
  // For ops that cannot run alone (they need state, files or a peer); tested elsewhere.
  OpDeclaration& NoExample(absl::string_view reason) {
    def_->no_example_reason = std::string(reason);
    return *this;
  }
  OpDeclaration& Deprecated(absl::string_view reason) {
    def_->deprecation_reason = std::string(reason);
    return *this;
  }

 private:
  friend class OpRegistry;
  OpDeclaration(OpDef* def, OpTraits* traits) : def_(def), traits_(traits) {}
  OpDef* def_;
  OpTraits* traits_;
};

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  OpDeclaration Add(absl::string_view schema);
  // An op known only by its definition (an op library, a function's signature).
  Status AddDef(OpDef def);

  const OpDef* Find(absl::string_view name) const;
  OpTraits TraitsOf(const OpDef& op) const;  // none where `op` is not of this registry
  std::vector<const OpDef*> All() const;     // sorted by name
  const Status& status() const { return status_; }

 private:
  std::deque<OpDef> ops_;
  absl::node_hash_map<const OpDef*, OpTraits> traits_;
  absl::flat_hash_map<std::string, OpDef*> by_name_;
  Status status_;
};

}  // namespace millrace
