// SPDX-License-Identifier: Apache-2.0
// A function becomes a graph with a placeholder for each argument, which is pruned, simplified and compiled as the
// graph of a step is.
#include "service/step_functions.h"

#include "base/exceptions.h"
#include "graph/function_call.h"
#include "graph/verify.h"
#include "passes/compile.h"
#include "runtime/executor.h"
#include "service/ask_kernels.h"
#include "service/plan_step.h"

namespace millrace {

bool CallGate::Enter() {
  absl::MutexLock lock(&mu_);
  running_ += !closed_;
  return !closed_;
}

void CallGate::Leave() {
  absl::MutexLock lock(&mu_);
  --running_;
}

void CallGate::Close() {
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
  }
  cancellation_.Cancel();
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(+[](int* running) { return *running == 0; }, &running_));
}

namespace {

// Calls within calls, each on the stack of the one around it.
class Depth {
 public:
  static constexpr int kMax = 16;
  Depth() { ++depth_; }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  bool TooDeep() const { return depth_ > kMax; }

 private:
  static thread_local int depth_;
};
constinit thread_local int Depth::depth_ = 0;

// The call's own cancellation: it ends when one of those outside does, and errors of the call stay in it.
class CallScope {
 public:
  CallScope(CancellationManager& caller, CancellationManager& worker) : outer_{&caller, &worker} {
    for (size_t i = 0; i < 2; ++i) {
      tokens_[i] = outer_[i]->Register([this] { inner_.Cancel(); });
      if (tokens_[i] == CancellationManager::kInvalid) inner_.Cancel();
    }
  }
  ~CallScope() {
    for (size_t i = 0; i < 2; ++i) {
      if (tokens_[i] != CancellationManager::kInvalid) outer_[i]->Deregister(tokens_[i]);
    }
  }
  CancellationManager& cancellation() { return inner_; }

 private:
  CancellationManager inner_;
  CancellationManager* const outer_[2];
  CancellationManager::Token tokens_[2];
};

class CompiledFunction final : public StepFunction {
 public:
  CompiledFunction(std::string name, std::unique_ptr<Plan> plan, std::shared_ptr<CallGate> gate)
      : name_(std::move(name)), plan_(std::move(plan)), gate_(std::move(gate)) {}

  Status Run(absl::Span<const Tensor> args, CancellationManager& cancellation,
             std::vector<Tensor>* results) const override {
    const Depth depth;
    if (depth.TooDeep()) {
      return ResourceExhausted("function '", name_, "' is called within ", Depth::kMax, " others by data sets");
    }
    if (!gate_->Enter()) return Cancelled("function '", name_, "' belongs to a session that has ended");
    const Status s = WithoutExceptions([&] { return RunInside(args, cancellation, results); });
    gate_->Leave();
    return s;
  }

 private:
  Status RunInside(absl::Span<const Tensor> args, CancellationManager& cancellation,
                   std::vector<Tensor>* results) const {
    CallScope scope(cancellation, gate_->cancellation());
    if (scope.cancellation().IsCancelled()) return Cancelled("function '", name_, "' was cancelled");
    const RefPtr<Rendezvous> rendezvous = NewLocalRendezvous();
    ResourceManager resources;
    StepContext step;
    step.rendezvous = rendezvous.get();
    step.cancellation = &scope.cancellation();
    step.step_resources = &resources;
    MR_ASSIGN_OR_RETURN(const HeldFrame frame, plan_->AcquireFrame());
    MR_RETURN_IF_ERROR(FillArgs(*plan_, args, *frame));
    MR_RETURN_IF_ERROR(Execute(*frame, step));
    return TakeRetvals(*plan_, *frame, results);
  }

  Status Execute(Frame& frame, StepContext& step) const {
    if (plan_->is_one_line()) return RunInOrder(*plan_, frame, step, {});
    return RunByReadinessHere(*plan_, frame, step, {}, /*may_be_interrupted=*/false);
  }

  const std::string name_;
  const std::unique_ptr<Plan> plan_;
  const std::shared_ptr<CallGate> gate_;
};

class LibraryFunctions final : public FunctionSource, public std::enable_shared_from_this<LibraryFunctions> {
 public:
  LibraryFunctions(const OpRegistry* ops, const KernelRegistry& kernels, Device& device, std::shared_ptr<CallGate> gate)
      : library_(ops), kernels_(kernels), device_(device), gate_(std::move(gate)) {}

  Status CopyLibrary(const Graph& graph) {
    for (const wire::FunctionDef* f : graph.Functions()) MR_RETURN_IF_ERROR(library_.AddFunction(*f));
    for (const wire::GradientDef& g : graph.gradient_defs()) MR_RETURN_IF_ERROR(library_.AddGradientDef(g));
    return VerifyFunctions(library_);
  }

  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    StatusOr<std::unique_ptr<Plan>> plan = CompilePlan(f, arg_types);
    if (!plan.ok()) return Annotate(plan.status(), absl::StrCat("function '", f.name, "': "));
    return RefPtr<StepFunction>(MakeRef<CompiledFunction>(f.name, *std::move(plan), gate_));
  }

 private:
  StatusOr<std::unique_ptr<Plan>> CompilePlan(const FuncAttr& f, const std::vector<DType>& arg_types) {
    Graph graph(&library_.registry());
    for (const wire::FunctionDef* def : library_.Functions()) MR_RETURN_IF_ERROR(graph.AddFunction(*def));
    for (const wire::GradientDef& g : library_.gradient_defs()) MR_RETURN_IF_ERROR(graph.AddGradientDef(g));
    RunSignature signature;
    for (size_t i = 0; i < arg_types.size(); ++i) {
      NodeSpec spec;
      spec.op = "Placeholder";
      spec.name = absl::StrCat("argument_", i);
      spec.attrs["dtype"] = arg_types[i];
      MR_ASSIGN_OR_RETURN(Node * argument, graph.AddNode(std::move(spec)));
      signature.feeds.push_back(argument->output(0));
    }
    MR_ASSIGN_OR_RETURN(
        FunctionBody body, InstantiateFunction({f.name, f.attrs, signature.feeds, {}, "function", ""}, &graph));
    signature.fetches = std::move(body.outputs);
    signature.targets = std::move(body.control_outputs);
    const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) { return use(graph); };
    MR_ASSIGN_OR_RETURN(const std::vector<Partition> parts, CompileGraph(lend, signature, {}, Environment()));
    if (parts.size() != 1) return Internal("it became ", parts.size(), " partitions");
    return MakePlan(parts.front());
  }

  PassEnvironment Environment() const {
    PassEnvironment env;
    env.devices = {device_.parsed_name()};
    env.incarnations = {device_.incarnation()};
    AskKernels(kernels_, device_, &env);
    env.soft_placement = true;
    return env;
  }

  StatusOr<std::unique_ptr<Plan>> MakePlan(const Partition& partition) {
    Plan::Options options;
    options.device = &device_;
    options.loops = &partition.loops;
    options.make_kernel = [this](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
      const KernelInit init{*n.op(), n.name(), n.attrs(), n.signature(), device_};
      StatusOr<std::unique_ptr<Kernel>> kernel = kernels_.Create(init);
      if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat(n.Describe(), ": "));
      if (auto* user = dynamic_cast<UsesFunctions*>(kernel->get())) user->SetFunctions(shared_from_this());
      return std::shared_ptr<Kernel>(*std::move(kernel));
    };
    return Plan::Compile(*partition.graph, options);
  }

  Graph library_;  // of functions alone
  const KernelRegistry& kernels_;
  Device& device_;
  const std::shared_ptr<CallGate> gate_;
};

}  // namespace

Status GiveFunctions(Kernel& kernel, const Graph& graph, const KernelRegistry& kernels, Device& device,
                     const std::shared_ptr<CallGate>& gate, std::shared_ptr<FunctionSource>* functions) {
  auto* user = dynamic_cast<UsesFunctions*>(&kernel);
  if (user == nullptr) return absl::OkStatus();
  if (!*functions) {
    auto made = std::make_shared<LibraryFunctions>(&graph.registry(), kernels, device, gate);
    MR_RETURN_IF_ERROR(made->CopyLibrary(graph));
    *functions = std::move(made);
  }
  user->SetFunctions(*functions);
  return absl::OkStatus();
}

}  // namespace millrace
