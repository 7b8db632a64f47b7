// SPDX-License-Identifier: Apache-2.0
// A function becomes a graph with a placeholder for each argument, which is pruned, simplified and compiled as the
// graph of a step is.
#include "service/step_functions.h"

#include <cstdlib>

#include "base/exceptions.h"
#include "base/hash_map.h"
#include "graph/function_call.h"
#include "graph/graph_def.h"
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
  session_.Cancel(WithoutExceptions([] { return Cancelled("the session was closed"); }));
  absl::MutexLock lock(&mu_);
  env_.Await(mu_, absl::Condition(+[](int* running) { return *running == 0; }, &running_));
}

namespace {

// Calls within calls, each on the stack of the one around it.
class Depth {
 public:
  static constexpr int kMaxOfDatasets = 16, kMaxOfRecursion = 1000;
  static constexpr ptrdiff_t kMaxStack = 3 << 20;  // of the eight MiB that threads have

  explicit Depth(bool is_recursive) : counter_(is_recursive ? recursion_ : datasets_) {
    if (recursion_ + datasets_ == 0) bottom_ = reinterpret_cast<const char*>(this);
    ++counter_;
  }
  ~Depth() { --counter_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

  Status Check(const std::string& name) const {
    if (datasets_ > kMaxOfDatasets) {
      return ResourceExhausted("function '", name, "' is called within ", kMaxOfDatasets, " others by data sets");
    }
    const ptrdiff_t stack = std::abs(bottom_ - reinterpret_cast<const char*>(this));
    if (recursion_ <= kMaxOfRecursion && stack <= kMaxStack) return absl::OkStatus();
    return ResourceExhausted(
        "function '", name, "' calls itself too deep: ", recursion_ - 1,
        " calls of functions that call themselves are under way, the limit is ", kMaxOfRecursion, " or ",
        kMaxStack >> 20, " MiB of stack");
  }

 private:
  int& counter_;
  static thread_local int datasets_, recursion_;
  static thread_local const char* bottom_;
};
constinit thread_local int Depth::datasets_ = 0;
constinit thread_local int Depth::recursion_ = 0;
constinit thread_local const char* Depth::bottom_ = nullptr;

class CompiledFunction final : public StepFunction {
 public:
  CompiledFunction(std::string name, std::unique_ptr<Plan> plan, std::shared_ptr<CallGate> gate, bool is_recursive,
                   bool keeps_state)
      : name_(std::move(name)),
        plan_(std::move(plan)),
        gate_(std::move(gate)),
        is_recursive_(is_recursive),
        keeps_state_(keeps_state) {}

  bool KeepsState() const override { return keeps_state_; }

  Status Run(absl::Span<const Tensor> args, CancellationManager& cancellation,
             std::vector<Tensor>* results) const override {
    const Depth depth(is_recursive_);
    MR_RETURN_IF_ERROR(depth.Check(name_));
    if (!gate_->Enter()) return Cancelled("function '", name_, "' belongs to a session that has ended");
    const Status s = WithoutExceptions([&] { return RunInside(args, cancellation, results); });
    gate_->Leave();
    return s;
  }

 private:
  Status RunInside(absl::Span<const Tensor> args, CancellationManager& cancellation,
                   std::vector<Tensor>* results) const {
    StopNode call(gate_->session(), cancellation);  // errors of the call stay in it
    if (call.IsCancelled()) return Annotate(call.reason(), absl::StrCat("function '", name_, "': "));
    const RefPtr<Rendezvous> rendezvous = NewLocalRendezvous();
    ResourceManager resources;
    StepContext step;
    step.rendezvous = rendezvous.get();
    step.cancellation = &call;
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
  const bool is_recursive_, keeps_state_;
};

// What kernels of functions have of the source that made them.
class InnerSource final : public FunctionSource {
 public:
  explicit InnerSource(std::shared_ptr<FunctionSource> source) : source_(std::move(source)) {}
  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    return source_->Compile(f, arg_types);
  }
  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    return source_->Shared(f, arg_types);
  }
  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& graph, const std::string& output) override {
    return source_->CompileImported(graph, output);
  }
  StatusOr<wire::FunctionDefLibrary> Definitions(std::vector<std::string> names) const override {
    return source_->Definitions(std::move(names));
  }
  bool IsInsideFunction() const override { return true; }

 private:
  const std::shared_ptr<FunctionSource> source_;
};

// What kernels of shared functions have of their source, which owns them.
class WeakSource final : public FunctionSource {
 public:
  explicit WeakSource(std::weak_ptr<FunctionSource> source) : source_(std::move(source)) {}
  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    return source ? source->Compile(f, arg_types) : StatusOr<RefPtr<StepFunction>>(Gone(f.name));
  }
  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    return source ? source->Shared(f, arg_types) : StatusOr<RefPtr<StepFunction>>(Gone(f.name));
  }
  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& graph, const std::string& output) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    return source ? source->CompileImported(graph, output) : StatusOr<RefPtr<StepFunction>>(Gone(output));
  }
  StatusOr<wire::FunctionDefLibrary> Definitions(std::vector<std::string> names) const override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    if (!source) return Gone(names.empty() ? "" : names.front());
    return source->Definitions(std::move(names));
  }
  bool IsInsideFunction() const override { return true; }

 private:
  static Status Gone(const std::string& name) {
    return Cancelled("function '", name, "' belongs to a step that has ended");
  }
  const std::weak_ptr<FunctionSource> source_;
};

// What the attribute names: a function, and those that its own attributes name.
void AddNames(const wire::AttrValue& value, std::vector<std::string>* names) {
  const auto add = [&](const wire::NameAttrList& f) {
    names->push_back(f.name);
    for (const auto& [name, inner] : f.attr) AddNames(inner, names);
  };
  if (value.func) add(*value.func);
  if (!value.list) return;
  for (const wire::NameAttrList& f : value.list->func) add(f);
}

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
    return Make(f, arg_types, std::make_shared<InnerSource>(shared_from_this()), false);
  }

  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types) override {
    absl::MutexLock lock(&mu_);
    std::vector<SharedFunction>& known = shared_[f.name];
    for (const SharedFunction& s : known) {
      if (s.arg_types == arg_types && AttrValue(s.called).Equals(AttrValue(f))) return s.function;
    }
    MR_ASSIGN_OR_RETURN(
        RefPtr<StepFunction> made, Make(f, arg_types, std::make_shared<WeakSource>(weak_from_this()), true));
    known.push_back({f, arg_types, made});
    return made;
  }

  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& def, const std::string& output) override {
    Graph graph(&library_.registry());
    ImportOptions options;
    options.return_outputs = {output};
    MR_ASSIGN_OR_RETURN(const ImportResult imported, ImportGraphDef(def, options, &graph));
    auto its_own = std::make_shared<LibraryFunctions>(&library_.registry(), kernels_, device_, gate_);
    MR_RETURN_IF_ERROR(its_own->CopyLibrary(graph));
    RunSignature signature;
    signature.fetches = imported.return_outputs;
    bool keeps_state = false;
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                        CompilePart(graph, signature, std::make_shared<InnerSource>(its_own), &keeps_state));
    return RefPtr<StepFunction>(MakeRef<CompiledFunction>(output, std::move(plan), gate_, false, keeps_state));
  }

  StatusOr<wire::FunctionDefLibrary> Definitions(std::vector<std::string> names) const override {
    wire::FunctionDefLibrary found;
    HashSet<std::string> seen;
    for (const std::string& name : names) {
      if (library_.FindFunction(name) == nullptr) return NotFound("there is no function '", name, "' here");
    }
    while (!names.empty()) {
      const std::string name = std::move(names.back());
      names.pop_back();
      const wire::FunctionDef* f = library_.FindFunction(name);  // null: the name of an op
      if (f == nullptr || !seen.insert(name).second) continue;
      found.function.push_back(*f);
      for (const wire::NodeDef& n : f->node_def) {
        names.push_back(n.op);
        for (const auto& [attr, value] : n.attr) AddNames(value, &names);
      }
      for (const wire::GradientDef& g : library_.gradient_defs()) {
        if (g.function_name != name) continue;
        found.gradient.push_back(g);
        names.push_back(g.gradient_func);
      }
    }
    return found;
  }

 private:
  // `source`: what its kernels get.
  StatusOr<RefPtr<StepFunction>> Make(const FuncAttr& f, const std::vector<DType>& arg_types,
                                      const std::shared_ptr<FunctionSource>& source, bool is_recursive) const {
    bool keeps_state = false;
    StatusOr<std::unique_ptr<Plan>> plan = CompilePlan(f, arg_types, source, &keeps_state);
    if (!plan.ok()) return Annotate(plan.status(), absl::StrCat("function '", f.name, "': "));
    return RefPtr<StepFunction>(MakeRef<CompiledFunction>(f.name, *std::move(plan), gate_, is_recursive, keeps_state));
  }

  StatusOr<std::unique_ptr<Plan>> CompilePlan(const FuncAttr& f, const std::vector<DType>& arg_types,
                                              const std::shared_ptr<FunctionSource>& source, bool* keeps_state) const {
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
    return CompilePart(graph, signature, source, keeps_state);
  }

  StatusOr<std::unique_ptr<Plan>> CompilePart(const Graph& graph, const RunSignature& signature,
                                              const std::shared_ptr<FunctionSource>& source, bool* keeps_state) const {
    const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) { return use(graph); };
    MR_ASSIGN_OR_RETURN(const std::vector<Partition> parts, CompileGraph(lend, signature, {}, Environment()));
    if (parts.size() != 1) return Internal("it became ", parts.size(), " partitions");
    for (const Node* n : parts.front().graph->nodes()) *keeps_state |= n->op()->stateful || NamesFunctions(*n);
    return MakePlan(parts.front(), source);
  }

  PassEnvironment Environment() const {
    PassEnvironment env;
    env.devices = {device_.parsed_name()};
    env.incarnations = {device_.incarnation()};
    AskKernels(kernels_, device_, &env);
    env.soft_placement = true;
    return env;
  }

  StatusOr<std::unique_ptr<Plan>> MakePlan(const Partition& partition,
                                           const std::shared_ptr<FunctionSource>& source) const {
    Plan::Options options;
    options.device = &device_;
    options.loops = &partition.loops;
    options.in_segments = partition.in_segments;
    options.make_kernel = [this, &source](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
      const KernelInit init{*n.op(), n.name(), n.attrs(), n.signature(), device_};
      StatusOr<std::unique_ptr<Kernel>> kernel = kernels_.Create(init);
      if (!kernel.ok()) return Annotate(kernel.status(), absl::StrCat(n.Describe(), ": "));
      if (auto* user = dynamic_cast<UsesFunctions*>(kernel->get())) user->SetFunctions(source);
      return std::shared_ptr<Kernel>(*std::move(kernel));
    };
    return Plan::Compile(*partition.graph, options);
  }

  // Whose kernels may remember something.
  static bool NamesFunctions(const Node& n) {
    for (const auto& [name, value] : n.attrs()) {
      if (value.get<FuncAttr>() != nullptr || value.get<std::vector<FuncAttr>>() != nullptr) return true;
    }
    return false;
  }

  struct SharedFunction {
    FuncAttr called;
    std::vector<DType> arg_types;
    RefPtr<StepFunction> function;
  };

  Graph library_;  // of functions alone
  const KernelRegistry& kernels_;
  Device& device_;
  const std::shared_ptr<CallGate> gate_;
  absl::Mutex mu_;
  HashMap<std::string, std::vector<SharedFunction>> shared_ ABSL_GUARDED_BY(mu_);  // by name
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
