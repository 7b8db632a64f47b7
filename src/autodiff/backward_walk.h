// SPDX-License-Identifier: Apache-2.0
// The walk itself. Nodes of one frame are a region; seen from the region around it a loop is one item, whose gradient
// is another loop. An item waits until all of its readers have reported.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "autodiff/backward_context.h"
#include "autodiff/gradients.h"
#include "base/hash_map.h"

namespace millrace {

// An output of unknown type may carry one: the walk then says which op it does not know.
bool CarriesGradient(DType t);

// The library's gradient function, called with the arguments and the gradients of all results.
Status CallGradientFunction(const std::string& gradient, GradContext& c);

class BackwardWalk {
 public:
  BackwardWalk(const GraphBuilder& builder, const GradientOptions& options);
  ~BackwardWalk();

  Status Run(const std::vector<Output>& ys, const std::vector<Output>& xs, const std::vector<Output>& grad_ys);
  // What has flowed into x, summed.
  StatusOr<Gradient> Take(Output x);
  // The same for the caller of the whole.
  StatusOr<Gradient> TakeResult(Output x);

 private:
  // A node, or a loop.
  struct Item {
    Node* node = nullptr;
    Loop* loop = nullptr;
    bool operator==(const Item&) const = default;
    explicit operator bool() const { return node != nullptr || loop != nullptr; }
    template <typename H>
    friend H AbslHashValue(H h, const Item& i) {
      return H::combine(std::move(h), i.node, i.loop);
    }
  };
  struct Region {
    Loop* loop = nullptr;
    std::unique_ptr<BackwardContext> context;  // null: nothing but a plain graph
    std::vector<Item> items;
    std::deque<Item> ready;
  };
  // The graph's context while a region's nodes are added.
  class InRegion;

  static size_t Id(const Node* n) { return static_cast<size_t>(n->id()); }
  bool IsBetween(const Node* n) const { return Id(n) < num_ids_ && between_[Id(n)] != nullptr; }
  GraphBuilder ScopeOf(Node* n) const;

  // gradients.cc: which nodes count, in which order, and what flows.
  Status Seed(const std::vector<Output>& ys, const std::vector<Output>& grad_ys);
  StatusOr<Output> SeedOf(size_t i, Output y);
  Status FindBetween(const std::vector<Output>& ys, const std::vector<Output>& xs);
  Status Reach(const std::vector<Output>& xs, std::vector<bool>* reached);
  StatusOr<bool> Blocks(const Node* n, bool entered_loop);
  StatusOr<bool> IsCut(const Consumer& edge);
  Status FindRoot(const std::vector<Output>& ys);
  Status StartTape(Output y);
  Status CountReaders(const std::vector<Node*>& order);
  Status WalkRegion(Region& region);
  Status Finish(const Item& item);
  Status Report(Item producer);
  Status Visit(Node* n);
  StatusOr<std::function<Status(GradContext&)>> FunctionOf(Node* n) const;
  Status Apply(Node* n, const std::function<Status(GradContext&)>& function, std::vector<Gradient> out);
  Status Flow(Node* n, int i, Gradient g);

  // control_flow_regions.cc: how nodes, frames and loops hang together.
  bool IsRoot(const Loop* loop) const { return ControlFlowStructure::Encloses(loop, root_); }
  StatusOr<Region*> RegionOf(const Node* n);
  Region& RegionOfLoop(Loop* loop);
  // The item that reads through the edge, and the item that made what it reads; empty where the edge is part of a
  // loop's skeleton.
  StatusOr<Item> Reader(Node* consumer, int input);
  StatusOr<Item> Producer(Output o);
  StatusOr<bool> IsSkeleton(const Node* n);
  StatusOr<std::vector<Item>> ItemsAround(Node* n);
  Status LinkStacks();

  // branch_gradients.cc
  Status SwitchGradient(Node* n, std::vector<Gradient> out);
  Status MergeGradient(Node* n, const Gradient& g);
  static std::array<Gradient, 2> Part(const GraphBuilder& b, const Gradient& g, Output predicate);
  StatusOr<Gradient> Lift(Node* n, Output x, Gradient g);
  StatusOr<Liveness> BranchesOf(const Node* n);
  Gradient Join(const GraphBuilder& b, Node* n, Gradient g0, Gradient g1);
  Output GuardedZeros(const GraphBuilder& b, Node* n, int side, DType dtype);
  StatusOr<Gradient> Guard(const GraphBuilder& b, Gradient g, int mark, const std::vector<Output>& guards);
  bool DependsOn(Output o, int mark, const std::vector<Output>& sources) const;

  // loop_gradients.cc
  Status LoopGradient(Loop* loop);
  Status CheckExits(Loop* loop);
  // The gradient of a loop variable, which goes around the backward loop.
  struct CarriedGradient {
    LoopVariable* forward = nullptr;
    BackwardContext::Variable backward;
  };
  Status StartVariable(Loop* loop, LoopVariable* v, Region& inner, Region& outer,
                       std::vector<CarriedGradient>* carried);
  Status CloseVariable(const CarriedGradient& c, Region& inner);
  StatusOr<Gradient> TakeAll(const std::vector<Output>& outputs);
  StatusOr<std::vector<std::pair<Node*, Gradient>>> TakeInvariants(Loop* loop);
  StatusOr<Gradient> Accumulate(Node* enter, const Gradient& g, Region& inner, Region& outer);
  StatusOr<Gradient> AccumulateRows(const GraphBuilder& b, Output x, IndexedSlices g, Region& inner, Region& outer);
  StatusOr<Output> Pile(Output first, const PartialShape& shape, Region& inner, Region& outer,
                        const std::function<Output(Output)>& add);
  StatusOr<bool> HasStackFlows(Loop* loop);
  Status PopGradientOf(Node* pop, const Gradient& g);
  Status PushGradientOf(Node* push, const Gradient& g);

  const GraphBuilder& builder_;
  bool Carries(DType t) const { return CarriesGradient(t) || (integers_ && IsInteger(BaseType(t))); }

  const GradientOptions& options_;
  bool integers_ = false;  // a y is an integer, and the client wants gradients of these too
  Graph& graph_;
  const size_t num_ids_;  // nodes from here on are ours
  HashSet<Output> stops_;
  std::vector<Node*> between_;  // by id; null for others
  HashMap<Output, std::vector<Gradient>> flows_;

  ControlFlowStructure structure_;
  bool has_control_flow_ = false;
  Loop* root_ = nullptr;  // the loop that ys are in
  std::unique_ptr<ForwardTape> tape_;
  GraphContext* around_ = nullptr;  // the graph's context before
  HashMap<Loop*, std::unique_ptr<Region>> regions_;
  Region* current_ = nullptr;
  std::vector<int> pending_;  // edges to readers that have not reported
  HashMap<Loop*, int> pending_loops_;
  HashMap<Loop*, std::vector<Node*>> exits_;  // between

  // Stacks of an earlier gradient carry values from the pushes of one loop to the pops of another.
  bool stacks_linked_ = false;
  HashMap<const Node*, Node*> pop_of_push_, push_of_pop_;
  HashMap<Item, std::vector<Item>> stack_edges_;  // from the reader to the producer
  HashMap<const Node*, Output> gradient_stacks_;  // of a push: handle
  HashMap<Item, std::vector<Node*>> after_;       // what must have run before an item's gradient starts
};

class BackwardWalk::InRegion {
 public:
  InRegion(BackwardWalk* walk, Region* region) : walk_(walk), before_(walk->current_) {
    walk_->current_ = region;
    context_before_ = walk_->graph_.context();
    if (region->context != nullptr) walk_->graph_.SetContext(region->context.get());
  }
  ~InRegion() {
    walk_->graph_.SetContext(context_before_);
    walk_->current_ = before_;
  }
  InRegion(const InRegion&) = delete;
  InRegion& operator=(const InRegion&) = delete;

 private:
  BackwardWalk* walk_;
  Region* before_;
  GraphContext* context_before_;
};

// Zeros for the gradient of `x`, which may be a handle of a variable.
Output ZerosForGradient(const GraphBuilder& b, Output x, DType dtype);
// The shape of `x`, or of the variable that it is a handle of, as an integer vector.
Output ShapeForGradient(const GraphBuilder& b, Output x);

}  // namespace millrace
