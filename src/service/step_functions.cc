// SPDX-License-Identifier: Apache-2.0
// A function becomes a graph with a placeholder for each argument, which is pruned, simplified and compiled as the
// graph of a step is.
#include "service/step_functions.h"

#include <atomic>
#include <cstdlib>
#include <deque>

#include "absl/strings/ascii.h"
#include "base/exceptions.h"
#include "base/hash_map.h"
#include "graph/function_call.h"
#include "graph/graph_def.h"
#include "graph/verify.h"
#include "kernel/device_env.h"
#include "kernel/session_scope.h"
#include "kernel/step_threads.h"
#include "kernel/wake_on_cancel.h"
#include "passes/compile.h"
#include "runtime/executor.h"
#include "runtime/interrupt.h"
#include "service/ask_kernels.h"
#include "service/plan_step.h"

namespace millrace {

bool CallGate::Enter() {
  absl::MutexLock lock(&mu_);
  running_ += !closed_;
  return !closed_;
}

void CallGate::Leave() {
  std::shared_ptr<void> left;
  {
    absl::MutexLock lock(&mu_);
    if (--running_ == 0) left.swap(ground_);
  }
  if (!left) return;
  // Where there can be no thread it ends here.
  WithoutExceptions([&] { return env_.StartThread([ground = std::move(left)] {}); }).IgnoreError();
}

void CallGate::Close() {
  CloseWithoutWait(nullptr);
  absl::MutexLock lock(&mu_);
  env_.Await(mu_, absl::Condition(+[](int* running) { return *running == 0; }, &running_));
}

void CallGate::CloseWithoutWait(std::shared_ptr<void> ground) {
  {
    absl::MutexLock lock(&mu_);
    if (!std::exchange(closed_, true) && running_ > 0) ground_ = std::move(ground);
  }
  session_.Cancel(WithoutExceptions([] { return Cancelled("the session was closed"); }));
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

// Inside of a gate, in its scope; or refused.
class Inside {
 public:
  explicit Inside(CallGate& gate) : gate_(gate), entered_(gate.Enter()) {}
  ~Inside() {
    if (entered_) gate_.Leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  Status Check(const std::string& name) const {
    return entered_ ? absl::OkStatus() : Cancelled("function '", name, "' belongs to a session that has ended");
  }

 private:
  CallGate& gate_;
  const bool entered_;
};

class CompiledFunction final : public StepFunction {
 public:
  CompiledFunction(std::string name, std::unique_ptr<Plan> plan, std::shared_ptr<SessionCalls> calls, bool is_recursive,
                   bool keeps_state)
      : name_(std::move(name)),
        plan_(std::move(plan)),
        calls_(std::move(calls)),
        is_recursive_(is_recursive),
        keeps_state_(keeps_state) {}

  bool KeepsState() const override { return keeps_state_; }

  Status Run(absl::Span<const Tensor> args, const FunctionCall& call, std::vector<Tensor>* results) const override {
    const Depth depth(is_recursive_);
    MR_RETURN_IF_ERROR(depth.Check(name_));
    const Inside inside(calls_->gate);
    MR_RETURN_IF_ERROR(inside.Check(name_));
    const SessionScope scope(calls_->session);
    return WithoutExceptions([&] { return RunInside(args, call, results); });
  }

 private:
  Status RunInside(absl::Span<const Tensor> args, const FunctionCall& of, std::vector<Tensor>* results) const {
    StopNode call(calls_->gate.session(), of.cancellation);  // errors of the call stay in it
    if (call.IsCancelled()) return Annotate(call.reason(), absl::StrCat("function '", name_, "': "));
    const RefPtr<Rendezvous> rendezvous = NewLocalRendezvous();
    ResourceManager resources;
    StepContext step;
    step.rendezvous = rendezvous.get();
    step.cancellation = &call;
    step.step_resources = &resources;
    step.max_threads = calls_->settings.max_threads;
    step.trace = of.trace;
    if (of.inter_op_threads) MR_RETURN_IF_ERROR(StepThreads::Attach(*of.inter_op_threads, resources));
    MR_ASSIGN_OR_RETURN(const HeldFrame frame, plan_->AcquireFrame());
    MR_RETURN_IF_ERROR(FillArgs(*plan_, args, *frame));
    MR_RETURN_IF_ERROR(Execute(*frame, step, OptionsOf(of)));
    return TakeRetvals(*plan_, *frame, results);
  }

  Status Execute(Frame& frame, StepContext& step, const ExecutorOptions& options) const {
    if (plan_->is_one_line()) return RunInOrder(*plan_, frame, step, options);
    return RunByReadinessHere(*plan_, frame, step, options, /*may_be_interrupted=*/false);
  }

  // Each call draws an order of its own; the n-th call of a function in sessions with one seed always the same.
  ExecutorOptions OptionsOf(const FunctionCall& call) const {
    const SessionSettings& session = calls_->settings;
    ExecutorOptions options;
    options.trace = call.trace;
    options.session = calls_->session;
    options.inter_op_threads = call.inter_op_threads.value_or(session.inter_op_threads);
    options.single_thread = session.deterministic || options.inter_op_threads == 1;
    if (session.deterministic && session.order_seed != 0) {
      options.order_seed =
          session.order_seed + num_calls_.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b97f4a7c15u;
    }
    return options;
  }

  const std::string name_;
  const std::unique_ptr<Plan> plan_;
  const std::shared_ptr<SessionCalls> calls_;
  mutable std::atomic<uint64_t> num_calls_{0};
  const bool is_recursive_, keeps_state_;
};

// What kernels of functions have of the source that made them.
class InnerSource final : public FunctionSource {
 public:
  explicit InnerSource(std::shared_ptr<FunctionSource> source) : source_(std::move(source)) {}
  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types,
                                         CancellationManager& cancellation) override {
    return source_->Compile(f, arg_types, cancellation);
  }
  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types,
                                        CancellationManager& cancellation) override {
    return source_->Shared(f, arg_types, cancellation);
  }
  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& graph, const std::string& output,
                                                 CancellationManager& cancellation) override {
    return source_->CompileImported(graph, output, cancellation);
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
  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types,
                                         CancellationManager& cancellation) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    if (!source) return Gone(f.name);
    return source->Compile(f, arg_types, cancellation);
  }
  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types,
                                        CancellationManager& cancellation) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    if (!source) return Gone(f.name);
    return source->Shared(f, arg_types, cancellation);
  }
  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& graph, const std::string& output,
                                                 CancellationManager& cancellation) override {
    const std::shared_ptr<FunctionSource> source = source_.lock();
    if (!source) return Gone(output);
    return source->CompileImported(graph, output, cancellation);
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

// Of a function's nodes, so that errors and traces say which function it is: its name, of letters that nodes may have.
std::string ScopeOf(absl::string_view function) {
  std::string scope(function.substr(0, 256));
  for (char& c : scope) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  if (scope.empty() || !absl::ascii_isalnum(static_cast<unsigned char>(scope[0]))) scope.insert(0, "function");
  return scope;
}

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
  LibraryFunctions(const OpRegistry* ops, const KernelRegistry& kernels, Device& device,
                   std::shared_ptr<SessionCalls> calls)
      : library_(ops), kernels_(kernels), device_(device), calls_(std::move(calls)) {}

  Status CopyLibrary(const Graph& graph) {
    for (const wire::FunctionDef* f : graph.Functions()) MR_RETURN_IF_ERROR(library_.AddFunction(*f));
    for (const wire::GradientDef& g : graph.gradient_defs()) MR_RETURN_IF_ERROR(library_.AddGradientDef(g));
    return VerifyFunctions(library_);
  }

  StatusOr<RefPtr<StepFunction>> Compile(const FuncAttr& f, const std::vector<DType>& arg_types,
                                         CancellationManager& cancellation) override {
    return Make(f, arg_types, {std::make_shared<InnerSource>(shared_from_this()), cancellation, false});
  }

  // Compiled by one of those who want it, without the lock, so that the others can end while they wait.
  StatusOr<RefPtr<StepFunction>> Shared(const FuncAttr& f, const std::vector<DType>& arg_types,
                                        CancellationManager& cancellation) override {
    const WakeOnCancel wake(cancellation, mu_);
    absl::MutexLock lock(&mu_);
    SharedFunction& s = FindOrAdd(f, arg_types);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !s.is_being_compiled || cancellation.IsCancelled();
    };
    EnvOf(device_).Await(mu_, absl::Condition(&ready));
    if (s.function) return s.function;
    MR_RETURN_IF_ERROR(cancellation.reason());
    s.is_being_compiled = true;
    mu_.Unlock();
    StatusOr<RefPtr<StepFunction>> made = WithoutExceptions([&] {
      return Make(f, arg_types, {std::make_shared<WeakSource>(weak_from_this()), cancellation, true});
    });
    mu_.Lock();
    s.is_being_compiled = false;
    if (made.ok()) s.function = *made;
    return made;
  }

  StatusOr<RefPtr<StepFunction>> CompileImported(const wire::GraphDef& def, const std::string& output,
                                                 CancellationManager& cancellation) override {
    const Inside inside(calls_->gate);
    MR_RETURN_IF_ERROR(inside.Check(output));
    Graph graph(&library_.registry());
    ImportOptions options;
    options.return_outputs = {output};
    MR_ASSIGN_OR_RETURN(const ImportResult imported, ImportGraphDef(def, options, &graph));
    auto its_own = std::make_shared<LibraryFunctions>(&library_.registry(), kernels_, device_, calls_);
    MR_RETURN_IF_ERROR(its_own->CopyLibrary(graph));
    RunSignature signature;
    signature.fetches = imported.return_outputs;
    return CompilePart(output, graph, signature, {std::make_shared<InnerSource>(its_own), cancellation, false});
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
  struct Wanted {
    std::shared_ptr<FunctionSource> source;  // what its kernels get
    CancellationManager& cancellation;       // of who asks for it
    bool is_recursive;
  };

  StatusOr<RefPtr<StepFunction>> Make(const FuncAttr& f, const std::vector<DType>& arg_types,
                                      const Wanted& wanted) const {
    const Inside inside(calls_->gate);
    MR_RETURN_IF_ERROR(inside.Check(f.name));
    StatusOr<RefPtr<StepFunction>> made = CompileBody(f, arg_types, wanted);
    if (!made.ok()) return Annotate(made.status(), absl::StrCat("function '", f.name, "': "));
    return made;
  }

  StatusOr<RefPtr<StepFunction>> CompileBody(const FuncAttr& f, const std::vector<DType>& arg_types,
                                             const Wanted& wanted) const {
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
        FunctionBody body, InstantiateFunction({f.name, f.attrs, signature.feeds, {}, ScopeOf(f.name), ""}, &graph));
    signature.fetches = std::move(body.outputs);
    signature.targets = std::move(body.control_outputs);
    return CompilePart(f.name, graph, signature, wanted);
  }

  StatusOr<RefPtr<StepFunction>> CompilePart(const std::string& name, const Graph& graph, const RunSignature& signature,
                                             const Wanted& wanted) const {
    const auto keep_going = [&]() -> Status {
      MR_RETURN_IF_ERROR(wanted.cancellation.reason());
      MR_RETURN_IF_ERROR(calls_->gate.session().reason());
      return KeepGoingUnlessInterrupted();
    };
    const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) { return use(graph); };
    PruneOptions prune;
    prune.calls.keep_going = keep_going;
    MR_ASSIGN_OR_RETURN(const std::vector<Partition> parts, CompileGraph(lend, signature, prune, Environment()));
    if (parts.size() != 1) return Internal("it became ", parts.size(), " partitions");
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, MakePlan(parts.front(), wanted.source, keep_going));
    bool keeps_state = false;  // asked after the plan, which refuses nodes whose op is not known
    for (const Node* n : parts.front().graph->nodes()) keeps_state |= n->op()->stateful || NamesFunctions(*n);
    return RefPtr<StepFunction>(
        MakeRef<CompiledFunction>(name, std::move(plan), calls_, wanted.is_recursive, keeps_state));
  }

  PassEnvironment Environment() const {
    PassEnvironment env;
    env.devices = {device_.parsed_name()};
    env.incarnations = {device_.incarnation()};
    AskKernels(kernels_, device_, &env);
    env.soft_placement = true;
    env.switched_off.insert(calls_->settings.switched_off.begin(), calls_->settings.switched_off.end());
    if (calls_->settings.max_folded_bytes > 0) env.max_folded_bytes = calls_->settings.max_folded_bytes;
    return env;
  }

  StatusOr<std::unique_ptr<Plan>> MakePlan(const Partition& partition, const std::shared_ptr<FunctionSource>& source,
                                           absl::FunctionRef<Status()> keep_going) const {
    Plan::Options options;
    options.device = &device_;
    options.loops = &partition.loops;
    options.updates_early = partition.updates_early;
    options.in_segments = partition.in_segments;
    options.make_kernel = [this, &source, keep_going](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
      MR_RETURN_IF_ERROR(keep_going());
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
    RefPtr<StepFunction> function;   // null: it is not compiled
    bool is_being_compiled = false;  // by one thread
  };
  // It stays where it is.
  SharedFunction& FindOrAdd(const FuncAttr& f, const std::vector<DType>& arg_types) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::deque<SharedFunction>& known = shared_[f.name];
    for (SharedFunction& s : known) {
      if (s.arg_types == arg_types && AttrValue(s.called).Equals(AttrValue(f))) return s;
    }
    return known.emplace_back(SharedFunction{f, arg_types, nullptr});
  }

  Graph library_;  // of functions alone
  const KernelRegistry& kernels_;
  Device& device_;
  const std::shared_ptr<SessionCalls> calls_;
  absl::Mutex mu_;
  HashMap<std::string, std::deque<SharedFunction>> shared_ ABSL_GUARDED_BY(mu_);  // by name
};

}  // namespace

Status GiveFunctions(Kernel& kernel, const Graph& graph, const KernelRegistry& kernels, Device& device,
                     const std::shared_ptr<SessionCalls>& calls, std::shared_ptr<FunctionSource>* functions) {
  auto* user = dynamic_cast<UsesFunctions*>(&kernel);
  if (user == nullptr) return absl::OkStatus();
  if (!*functions) {
    auto made = std::make_shared<LibraryFunctions>(&graph.registry(), kernels, device, calls);
    MR_RETURN_IF_ERROR(made->CopyLibrary(graph));
    *functions = std::move(made);
  }
  user->SetFunctions(*functions);
  return absl::OkStatus();
}

}  // namespace millrace
