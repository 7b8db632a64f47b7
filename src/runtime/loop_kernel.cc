// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop_kernel.h"

#include <algorithm>

#include "base/hash_map.h"
#include "runtime/interrupt.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

// A value that crosses into a plan or out of it, in each iteration.
struct Crossing {
  Slot* from;
  Slot* to;
  bool moves;  // nobody else reads `from`
};
using Crossings = absl::InlinedVector<Crossing, 8>;

inline void Carry(const Crossings& crossings) {
  for (const Crossing& c : crossings) {
    if (c.from->ref) {
      c.to->tensor = c.from->ref->ReadOrEmpty();
    } else if (c.moves) {
      MoveTensor(c.from->tensor, &c.to->tensor);  // in the next iteration a node that is dead may have the slot
    } else {
      c.to->tensor = c.from->tensor;
    }
  }
}

// A plan that runs once an iteration, in a frame that is kept for the whole loop.
class Segment {
 public:
  using Slots = absl::InlinedVector<Slot, 8>;

  Segment(std::unique_ptr<Plan> plan, std::vector<LoopValue> args) : plan_(std::move(plan)), args_(std::move(args)) {
    HashMap<int, int> last_reader;
    for (int i = 0; i < plan_->num_retvals(); ++i) last_reader[plan_->retval_slot(i)] = i;
    for (int i = 0; i < plan_->num_retvals(); ++i) {
      const int slot = plan_->retval_slot(i);
      moves_.push_back(last_reader[slot] == i && !plan_->Lasts(slot));
    }
  }

  const Plan& plan() const { return *plan_; }

  // Arguments that do not change have slots that last as long as the frame is held.
  void SetInvariants(Frame& frame, const KernelContext& ctx, size_t first) const {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (args_[i].kind != LoopValue::Kind::kInvariant) continue;
      ArgOf(frame, i).tensor = ctx.input(static_cast<int>(first) + args_[i].index);
    }
  }

  // From the loop's values to the arguments; each value is one argument at most.
  Crossings In(Frame& frame, Slots& variables, Slots& computed) const {
    Crossings in;
    for (size_t i = 0; i < args_.size(); ++i) {
      const LoopValue& v = args_[i];
      if (v.kind == LoopValue::Kind::kInvariant) continue;
      Slots& from = v.kind == LoopValue::Kind::kVariable ? variables : computed;
      in.push_back({&from[static_cast<size_t>(v.index)], &ArgOf(frame, i), /*moves=*/true});
    }
    return in;
  }

  // From retval `first` on.
  Crossings Out(Frame& frame, size_t first, Slots& to) const {
    Crossings out;
    for (size_t i = 0; i < to.size(); ++i) {
      const auto slot = static_cast<size_t>(plan_->retval_slot(static_cast<int>(first + i)));
      out.push_back({&frame.slots[slot], &to[i], moves_[first + i]});
    }
    return out;
  }

 private:
  Slot& ArgOf(Frame& frame, size_t i) const {
    return frame.slots[static_cast<size_t>(plan_->arg_slot(static_cast<int>(i)))];
  }

  std::unique_ptr<Plan> plan_;
  std::vector<LoopValue> args_;
  std::vector<bool> moves_;  // per retval: nobody reads its slot after it, and the plan does not keep it
};

class LoopKernel : public Kernel {
 public:
  LoopKernel(const CollapsedLoop& loop, Segment predicate, Segment body)
      : name_(loop.name),
        num_variables_(loop.num_variables),
        results_(loop.results),
        predicate_(std::move(predicate)),
        body_(std::move(body)) {}

  // Inputs: the variables' first values, then the invariants.
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const HeldFrame predicate_frame, predicate_.plan().AcquireFrame());
    MR_ASSIGN_OR_RETURN(const HeldFrame body_frame, body_.plan().AcquireFrame());
    Segment::Slots variables(num_variables_), computed(static_cast<size_t>(predicate_.plan().num_retvals() - 1)),
        pred(1);
    for (size_t i = 0; i < num_variables_; ++i) variables[i].tensor = ctx.input(static_cast<int>(i));
    predicate_.SetInvariants(*predicate_frame, ctx, num_variables_);
    body_.SetInvariants(*body_frame, ctx, num_variables_);
    // The predicate's plan only looks at the variables: its arguments last, and go back as they came.
    const Crossings into_predicate = predicate_.In(*predicate_frame, variables, computed);
    Crossings back;
    for (const Crossing& c : into_predicate) back.push_back({c.to, c.from, /*moves=*/true});
    const Crossings decision = predicate_.Out(*predicate_frame, 0, pred);
    const Crossings out_of_predicate = predicate_.Out(*predicate_frame, 1, computed);
    const Crossings into_body = body_.In(*body_frame, variables, computed);
    const Crossings out_of_body = body_.Out(*body_frame, 0, variables);
    StepContext& step = ctx.step();
    StopScope stop(&StepMustStop, &step);
    const ExecutorOptions options{.trace = step.trace, .stop = &stop};
    Interrupt* const interrupt = CurrentInterrupt();
    for (int64_t iteration = 0;; ++iteration) {
      // Plans look after each node, but a loop may have none.
      if (step.cancellation && step.cancellation->IsCancelled()) return step.cancellation->reason();
      if (interrupt && interrupt->IsDue() && interrupt->Look()) return Interrupted();
      Carry(into_predicate);
      MR_RETURN_IF_ERROR(RunInOrder(predicate_.plan(), *predicate_frame, step, options));
      Carry(decision);
      if (!IsDecision(pred[0].tensor)) return NoDecision(pred[0].tensor);
      Carry(out_of_predicate);
      Carry(back);
      if (!*pred[0].tensor.data<bool>()) break;
      Carry(into_body);
      MR_RETURN_IF_ERROR(RunInOrder(body_.plan(), *body_frame, step, options));
      Carry(out_of_body);
      for (size_t i = 0; i < num_variables_; ++i) {
        if (variables[i].tensor.IsInitialized()) continue;
        return InvalidArgument("variable ", i, " of loop '", name_, "' has no value after iteration ", iteration,
                               ": it lies on a branch that was not taken");
      }
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const size_t at = static_cast<size_t>(results_[i].index);
      switch (results_[i].kind) {
        case LoopValue::Kind::kVariable: ctx.set_output(static_cast<int>(i), variables[at].tensor); break;
        case LoopValue::Kind::kComputed: ctx.set_output(static_cast<int>(i), computed[at].tensor); break;
        case LoopValue::Kind::kInvariant:
          ctx.set_output(static_cast<int>(i), ctx.input(static_cast<int>(num_variables_ + at)));
          break;
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsDecision(const Tensor& pred) {
    return pred.IsInitialized() && pred.dtype() == DType::kBool && pred.num_elements() == 1;
  }
  Status NoDecision(const Tensor& pred) const {
    return InvalidArgument(
        "the predicate of loop '", name_, "' must be a scalar bool, but it is ",
        pred.IsInitialized() ? absl::StrCat(DTypeName(pred.dtype()), pred.shape().ToString()) : "dead");
  }

  const std::string name_;
  const size_t num_variables_;
  const std::vector<LoopValue> results_;
  const Segment predicate_, body_;
};

}  // namespace

StatusOr<std::shared_ptr<Kernel>> MakeLoopKernel(const CollapsedLoop& loop, const Plan::Options& options) {
  const auto compile =
      [&](const Graph& graph, const std::vector<LoopValue>& args, bool all_last) -> StatusOr<std::unique_ptr<Plan>> {
    Plan::Options own = options;
    own.lasting_args.clear();
    own.in_segments = true;  // it waits for nothing: one
    for (size_t i = 0; i < args.size(); ++i) {
      if (all_last || args[i].kind == LoopValue::Kind::kInvariant) own.lasting_args.push_back(static_cast<int>(i));
    }
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, Plan::Compile(graph, own));
    if (plan->is_one_line()) return plan;
    return Unimplemented("loop '", loop.name, "' has a node that waits, although its op does not say so");
  };
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> predicate, compile(*loop.predicate, loop.predicate_args, true));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> body, compile(*loop.body, loop.body_args, false));
  return std::make_shared<LoopKernel>(
      loop, Segment(std::move(predicate), loop.predicate_args), Segment(std::move(body), loop.body_args));
}

}  // namespace millrace
