// SPDX-License-Identifier: Apache-2.0
// Composites: what is made of ops. A composite is declared like an op, in the same notation, but has an expansion
// instead of a kernel: calling it builds nodes. So dropout, losses or a decay are stated once, for every client, and
// their gradients come from the ops they are made of.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "graph/graph_builder.h"

namespace millrace {

// One call, its attributes complete and its inputs sorted by argument.
class CompositeCall {
 public:
  CompositeCall(const OpDef& def, const NodeSpec& spec, const NodeSignature& signature)
      : def_(def), spec_(spec), signature_(signature) {}
  // The single input with this name; null when there is none.
  Output x(absl::string_view arg) const;
  std::vector<Output> list(absl::string_view arg) const;
  const AttrMap& attrs() const { return spec_.attrs; }
  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return GetAttr<T>(spec_.attrs, name);
  }

 private:
  const OpDef& def_;
  const NodeSpec& spec_;
  const NodeSignature& signature_;
};

// Builds the nodes and returns the outputs, in the order of the declaration.
using ExpandFn = StatusOr<std::vector<Output>> (*)(const GraphBuilder& b, const CompositeCall& call);

struct CompositeDef {
  OpDef def;
  ExpandFn expand = nullptr;
};

class CompositeDeclaration {
 public:
  explicit CompositeDeclaration(CompositeDef* def) : def_(def) {}
  CompositeDeclaration& Doc(absl::string_view text) {
    def_->def.doc = std::string(text);
    return *this;
  }
  CompositeDeclaration& Example(absl::string_view text) {
    def_->def.examples.emplace_back(text);
    return *this;
  }
  CompositeDeclaration& Expand(ExpandFn fn) {
    def_->expand = fn;
    return *this;
  }

 private:
  CompositeDef* def_;
};

// Filled by plain calls at start, then read-only. status() holds the first wrong declaration.
class CompositeRegistry {
 public:
  CompositeDeclaration Add(absl::string_view schema);
  const CompositeDef* Find(absl::string_view name) const;
  std::vector<const CompositeDef*> All() const;
  const Status& status() const { return status_; }

 private:
  std::deque<CompositeDef> composites_;
  Status status_;
};

// Expands the composite `spec.op` below the scope `spec.name` (or the composite's name) of `b`; where the name ends in
// '/', its nodes join that scope as it is ("/" alone: that of `b`). NotFound when there is no
// such composite; InvalidArgument when inputs or attributes do not fit its declaration.
StatusOr<std::vector<Output>> ExpandComposite(const CompositeRegistry& registry, const GraphBuilder& b, NodeSpec spec);

// The table of families.
void RegisterNnComposites(CompositeRegistry& registry);      // dropout, normalisation, dense
void RegisterMomentComposites(CompositeRegistry& registry);  // means and variances
void RegisterLossComposites(CompositeRegistry& registry);
void RegisterRnnComposites(CompositeRegistry& registry);       // recurrent cells and loops over sequences
void RegisterTrainingComposites(CompositeRegistry& registry);  // clipping, initialisers
void RegisterDecayComposites(CompositeRegistry& registry);     // learning rates that change with the step
void RegisterAllComposites(CompositeRegistry& registry);

}  // namespace millrace
