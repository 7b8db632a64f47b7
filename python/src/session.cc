// SPDX-License-Identifier: Apache-2.0
// Running steps. What a pair of (structure of the fetches, keys of the feeds) means is found out once, by Python code,
// and kept as a Plan; a later run with the same pair goes from NumPy to the library and back in C++ alone.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "core.h"

namespace millrace::python {
namespace {

struct Feed {
  nb::object tensor;
  TF_Output output;
  TF_DataType type;
  std::string what;  // "Tensor 'x:0'"
  bool has_rank = false;
  std::vector<int64_t> dims;
};

// How fetched values become what the caller gets.
enum class Shape { kValue, kList, kTuple, kBuild };

struct Plan {
  std::vector<Feed> feeds;
  std::vector<TF_Output> fetches;
  std::vector<TF_Operation*> targets;
  std::vector<std::pair<int, int>>
      slots;  // leaf: >= 0 the number of a fetch; -1 None; second: >= 0 the number of a feed
  Shape shape = Shape::kBuild;
  nb::object build;  // (list of leaf values) -> result, for kBuild
  nb::object keep;   // what the key's addresses belong to

  int Traverse(visitproc visit, void* arg) const {
    for (const Feed& f : feeds) Py_VISIT(f.tensor.ptr());
    Py_VISIT(build.ptr());
    Py_VISIT(keep.ptr());
    return 0;
  }
};

using Key = std::vector<uintptr_t>;
struct KeyHash {
  size_t operator()(const Key& key) const {
    size_t h = 1469598103934665603ull;
    for (uintptr_t v : key) h = (h ^ (v >> 4)) * 1099511628211ull;
    return h;
  }
};

enum Mark : uintptr_t { kLeaf = 1, kListMark = 2, kTupleMark = 3, kDictMark = 4, kFeeds = 5 };

// The structure as numbers: equal for structures that mean the same, as long as the objects live. False: too deep.
bool Append(PyObject* value, Key* key, int depth) {
  if (depth > 50) return false;
  const bool list = PyList_CheckExact(value);
  if (list || PyTuple_Check(value)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
    key->push_back(list ? kListMark : kTupleMark);
    key->push_back(reinterpret_cast<uintptr_t>(Py_TYPE(value)));
    key->push_back(static_cast<uintptr_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!Append(PySequence_Fast_GET_ITEM(value, i), key, depth + 1)) return false;
    }
    return true;
  }
  if (PyDict_CheckExact(value)) {
    key->push_back(kDictMark);
    key->push_back(static_cast<uintptr_t>(PyDict_Size(value)));
    PyObject *k = nullptr, *v = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &k, &v)) {
      key->push_back(reinterpret_cast<uintptr_t>(k));
      if (!Append(v, key, depth + 1)) return false;
    }
    return true;
  }
  key->push_back(kLeaf);
  key->push_back(reinterpret_cast<uintptr_t>(value));
  return true;
}

[[noreturn]] void ThrowClosed() { throw std::runtime_error(AtUserLine("Attempted to use a closed Session.")); }

class Session {
 public:
  Session(nb::object graph, const std::string& target, nb::bytes config) : graph_(std::move(graph)) {
    graph_state_ = &GraphOf(graph_);
    TF_SessionOptions* options = Api().NewSessionOptions();
    CallStatus status;
    Api().SetTarget(options, target.c_str());
    if (config.size() > 0) Api().SetConfig(options, config.data(), config.size(), status);
    if (status.ok()) session_ = Api().NewSession(GraphOf(graph_).get(), options, status);
    Api().DeleteSessionOptions(options);
    status.RaiseIfError();
    WatchSignals(session_);
  }
  ~Session() { Delete(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  TF_Session* get() const { return session_; }
  nb::object graph() const { return graph_; }
  int Traverse(visitproc visit, void* arg) const {
    Py_VISIT(graph_.ptr());
    for (const auto& [key, plan] : plans_) {
      if (const int stop = plan->Traverse(visit, arg)) return stop;
    }
    return 0;
  }
  void Clear() {
    auto dropped = std::move(plans_);
    plans_.clear();
    auto last = std::exchange(last_plan_, nullptr);
    last_key_.clear();
  }

  void Close() {
    closed_ = true;
    if (session_ == nullptr) return;
    CallStatus status;
    {
      const GilRelease release;
      Api().CloseSession(session_, status);
    }
    status.RaiseIfError();
  }
  bool closed() const { return closed_; }

  // resolve(fetches, feed keys) -> (fetch tensors, target operations, slots, shape, build)
  nb::object Run(nb::handle fetches, nb::handle feeds, nb::handle resolve, nb::handle options, nb::handle metadata) {
    if (closed_) ThrowClosed();
    DrainReleased();
    Key key;
    key.reserve(16);
    if (!Append(fetches.ptr(), &key, 0)) throw nb::value_error("The fetches are nested too deeply.");
    key.push_back(kFeeds);
    std::vector<PyObject*> values;
    if (!feeds.is_none()) {
      PyObject *k = nullptr, *v = nullptr;
      Py_ssize_t position = 0;
      while (PyDict_Next(feeds.ptr(), &position, &k, &v)) {
        key.push_back(reinterpret_cast<uintptr_t>(k));
        values.push_back(v);
      }
    }
    std::shared_ptr<Plan> plan;
    if (last_plan_ && key == last_key_) {
      plan = last_plan_;
    } else {
      auto found = plans_.find(key);
      if (found == plans_.end()) {
        if (plans_.size() >= 4096) plans_.clear();
        found = plans_.emplace(key, MakePlan(fetches, feeds, resolve)).first;
      }
      plan = last_plan_ = found->second;
      last_key_ = std::move(key);
    }
    return RunPlan(*plan, values.data(), values.size(), options, metadata);
  }

  std::shared_ptr<Plan> MakePlan(nb::handle fetches, nb::handle feeds, nb::handle resolve) {
    nb::list keys;
    if (!feeds.is_none()) {
      for (auto [k, v] : nb::cast<nb::dict>(feeds)) keys.append(k);
    }
    nb::tuple parts = nb::cast<nb::tuple>(resolve(fetches, keys));
    auto plan = std::make_shared<Plan>();
    for (nb::handle t : nb::cast<nb::list>(parts[0])) plan->fetches.push_back(OutputOf(t));
    for (nb::handle o : nb::cast<nb::list>(parts[1])) plan->targets.push_back(nb::inst_ptr<Operation>(o)->oper);
    plan->slots = SlotsOf(nb::cast<nb::list>(parts[2]));
    plan->shape = static_cast<Shape>(nb::cast<int>(parts[3]));
    plan->build = parts[4];
    for (nb::handle t : keys) plan->feeds.push_back(FeedOf(t));
    plan->keep = nb::make_tuple(Held(fetches), keys, parts);
    return plan;
  }

  nb::object RunPlan(const Plan& plan, PyObject* const* values, size_t count, nb::handle options, nb::handle metadata) {
    if (closed_ || session_ == nullptr) ThrowClosed();
    if (known_operations_ != graph_state_->operations.size()) NoteGrowth();
    std::vector<TensorHolder> given = FeedValues(plan, values, count);
    TF_Output inputs[16];
    TF_Tensor* input_values[16];
    std::vector<TF_Output> many_inputs;
    std::vector<TF_Tensor*> many_values;
    TF_Output* in = inputs;
    TF_Tensor** in_values = input_values;
    if (count > 16) {
      many_inputs.resize(count);
      many_values.resize(count);
      in = many_inputs.data();
      in_values = many_values.data();
    }
    for (size_t i = 0; i < count; ++i) {
      in[i] = plan.feeds[i].output;
      in_values[i] = given[i].get();
    }
    std::vector<TF_Tensor*> fetched(plan.fetches.size() + 1, nullptr);
    CallStatus status;
    TF_Buffer option_bytes{nullptr, 0, nullptr};
    nb::bytes kept = options.is_valid() && !options.is_none() ? nb::cast<nb::bytes>(options) : nb::bytes("");
    const bool with_options = options.is_valid() && !options.is_none();
    if (with_options) option_bytes = {kept.data(), kept.size(), nullptr};
    std::optional<CallBuffer> about;
    if (metadata.is_valid() && !metadata.is_none()) about.emplace();
    {
      const StepScope step(&TellOfWaiting, this, &plan);
      const GilRelease release;
      Api().SessionRun(
          session_, with_options ? &option_bytes : nullptr, in, in_values, static_cast<int>(count), plan.fetches.data(),
          fetched.data(), static_cast<int>(plan.fetches.size()), plan.targets.data(),
          static_cast<int>(plan.targets.size()), about ? static_cast<TF_Buffer*>(*about) : nullptr, status);
    }
    if (!status.ok()) {
      RaiseInterruption();
      status.RaiseIfError(graph_);
    }
    if (about) metadata(about->bytes());
    return Results(plan, fetched, values);
  }

  static void Reset(const std::string& target, const std::vector<std::string>& containers, nb::bytes config) {
    std::vector<const char*> names;
    for (const std::string& c : containers) names.push_back(c.c_str());
    TF_SessionOptions* options = Api().NewSessionOptions();
    CallStatus status;
    Api().SetTarget(options, target.c_str());
    Api().SetConfig(options, config.c_str(), config.size(), status);
    if (status.ok()) {
      const GilRelease release;  // steps that end may need it
      Api().Reset(options, names.data(), static_cast<int>(names.size()), status);
    }
    Api().DeleteSessionOptions(options);
    status.RaiseIfError();
  }

  // Partial runs.
  std::string StartPartial(const std::vector<nb::object>& fetches, const std::vector<nb::object>& targets,
                           const std::vector<nb::object>& feeds) {
    std::vector<TF_Output> in, out;
    std::vector<TF_Operation*> operations;
    for (const nb::object& t : feeds) in.push_back(OutputOf(t));
    for (const nb::object& t : fetches) out.push_back(OutputOf(t));
    for (const nb::object& t : targets) operations.push_back(nb::inst_ptr<Operation>(t)->oper);
    const char* handle = nullptr;
    CallStatus status;
    Api().SessionPRunSetup(session_, in.data(), static_cast<int>(in.size()), out.data(), static_cast<int>(out.size()),
                           operations.data(), static_cast<int>(operations.size()), &handle, status);
    status.RaiseIfError();
    std::string text = handle;
    Api().DeletePRunHandle(handle);
    return text;
  }

  // As a text, and as JSON.
  std::pair<std::string, std::string> Explain(
      const std::vector<nb::object>& fetches, const std::vector<nb::object>& targets,
      const std::vector<nb::object>& feeds) {
    static const auto explain =
        reinterpret_cast<decltype(&MR_SessionExplainBoth)>(LibraryFunction("MR_SessionExplainBoth"));
    std::vector<TF_Output> in, out;
    std::vector<TF_Operation*> operations;
    for (const nb::object& t : feeds) in.push_back(OutputOf(t));
    for (const nb::object& t : fetches) out.push_back(OutputOf(t));
    for (const nb::object& t : targets) operations.push_back(nb::inst_ptr<Operation>(t)->oper);
    CallStatus status;
    CallBuffer text, json;
    explain(session_, in.data(), static_cast<int>(in.size()), out.data(), static_cast<int>(out.size()),
            operations.data(), static_cast<int>(operations.size()), text, json, status);
    status.RaiseIfError(graph_);
    return {std::string(text.view()), std::string(json.view())};
  }

  nb::object RunPartial(const std::string& handle, nb::handle fetches, nb::handle feeds, nb::handle resolve) {
    const std::shared_ptr<Plan> plan = MakePlan(fetches, feeds, resolve);
    std::vector<PyObject*> values;
    if (!feeds.is_none()) {
      for (auto [k, v] : nb::cast<nb::dict>(feeds)) values.push_back(v.ptr());
    }
    std::vector<TensorHolder> given = FeedValues(*plan, values.data(), values.size());
    std::vector<TF_Output> in;
    std::vector<TF_Tensor*> in_values;
    for (size_t i = 0; i < given.size(); ++i) {
      in.push_back(plan->feeds[i].output);
      in_values.push_back(given[i].get());
    }
    std::vector<TF_Tensor*> fetched(plan->fetches.size() + 1, nullptr);
    CallStatus status;
    {
      const GilRelease release;
      Api().SessionPRun(session_, handle.c_str(), in.data(), in_values.data(), static_cast<int>(in.size()),
                        plan->fetches.data(), fetched.data(), static_cast<int>(plan->fetches.size()),
                        plan->targets.data(), static_cast<int>(plan->targets.size()), status);
    }
    if (!status.ok()) RaiseInterruption();
    status.RaiseIfError(graph_);
    return Results(*plan, fetched, values.data());
  }

  nb::bytes RandomState() {
    CallStatus status;
    TF_Buffer* buffer = Api().NewBuffer();
    Api().SessionRandomState(session_, buffer, status);
    nb::bytes state(static_cast<const char*>(buffer->data), buffer->length);
    Api().DeleteBuffer(buffer);
    status.RaiseIfError();
    return state;
  }
  void SetRandomState(nb::bytes state) {
    CallStatus status;
    Api().SetSessionRandomState(session_, state.data(), state.size(), status);
    status.RaiseIfError();
  }

  nb::list Devices() {
    CallStatus status;
    TF_DeviceList* list = Api().SessionListDevices(session_, status);
    status.RaiseIfError();
    nb::list out;
    for (int i = 0; i < Api().DeviceListCount(list); ++i) {
      out.append(nb::make_tuple(Api().DeviceListName(list, i, status), Api().DeviceListType(list, i, status),
                                Api().DeviceListMemoryBytes(list, i, status)));
    }
    Api().DeleteDeviceList(list);
    return out;
  }

  // In the order of Devices().
  std::vector<uint64_t> Incarnations() {
    CallStatus status;
    TF_DeviceList* list = Api().SessionListDevices(session_, status);
    status.RaiseIfError();
    std::vector<uint64_t> out;
    for (int i = 0; i < Api().DeviceListCount(list); ++i) out.push_back(Api().DeviceListIncarnation(list, i, status));
    Api().DeleteDeviceList(list);
    return out;
  }

 private:
  void Delete() {
    plans_.clear();
    last_plan_.reset();
    if (session_ == nullptr) return;
    CallStatus status;
    const GilRelease release;
    Api().CloseSession(session_, status);
    Api().DeleteSession(session_, status);
    session_ = nullptr;
  }

  // `keep` of a plan ends with what the resolver gave: fetches, targets and so on.
  static void TellOfWaiting(const void* session, const void* plan) {
    try {
      const nb::handle parts = static_cast<const Plan*>(plan)->keep[2];
      registry().step_waits(nb::find(*static_cast<const Session*>(session)), parts[0], parts[1]);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a step that waits");
    } catch (const std::exception&) {  // a warning is not worth more
    }
  }

  // A loop that adds operations between runs shows by a line that does so time and again.
  void NoteGrowth() {
    known_operations_ = graph_state_->operations.size();
    if (growth_warned_) return;
    const bool first_run = end_of_graph_ == 0;
    TF_Operation* const first = Api().GraphNextOperation(graph_state_->get(), &end_of_graph_);
    if (first == nullptr) return;
    while (Api().GraphNextOperation(graph_state_->get(), &end_of_graph_) != nullptr) continue;
    if (first_run) return;
    const std::string line = Api().OperationLocation(first);
    if (line.empty() || ++growths_[line] < kGrowthsToWarn) return;
    growth_warned_ = true;
    growths_.clear();
    registry().warn_growth(line, end_of_graph_);
  }

  // The objects in a structure, so that their addresses stay theirs.
  static nb::object Held(nb::handle value) {
    nb::list all;
    Collect(value, all);
    return all;
  }
  static void Collect(nb::handle value, nb::list& all) {
    if (PyList_CheckExact(value.ptr()) || PyTuple_Check(value.ptr())) {
      for (nb::handle e : value) Collect(e, all);
    } else if (PyDict_CheckExact(value.ptr())) {
      for (auto [k, v] : nb::cast<nb::dict>(value)) {
        all.append(k);
        Collect(v, all);
      }
    } else {
      all.append(value);
    }
  }

  static std::vector<std::pair<int, int>> SlotsOf(const nb::list& list) {
    std::vector<std::pair<int, int>> slots;
    for (nb::handle s : list) slots.emplace_back(nb::cast<int>(s[0]), nb::cast<int>(s[1]));
    return slots;
  }

  Feed FeedOf(nb::handle tensor) const {
    Feed f;
    f.tensor = nb::borrow(tensor);
    f.output = OutputOf(tensor);
    f.type = nb::inst_ptr<Tensor>(tensor)->type;
    f.what = "Tensor '" + nb::cast<std::string>(tensor.attr("name")) + "'";
    CallStatus status;
    TF_Graph* graph = GraphOf(graph_).get();
    const int rank = Api().GraphGetTensorNumDims(graph, f.output, status);
    f.has_rank = rank >= 0;
    if (rank > 0) {
      f.dims.resize(static_cast<size_t>(rank));
      Api().GraphGetTensorShape(graph, f.output, f.dims.data(), rank, status);
    }
    return f;
  }

  static std::vector<TensorHolder> FeedValues(const Plan& plan, PyObject* const* values, size_t count) {
    std::vector<TensorHolder> given;
    given.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const Feed& f = plan.feeds[i];
      if (IsTensor(values[i])) {
        throw nb::type_error(
            AtUserLine("The value of a feed cannot be a tf.Tensor object, as that of " + f.what +
                       " is. Acceptable feed values include Python scalars, strings, lists, and "
                       "numpy ndarrays: feed session.run(value)")
                .c_str());
      }
      given.push_back(ToTensor(values[i], f.type, f.what, f.has_rank ? &f.dims : nullptr));
    }
    return given;
  }

  static nb::object Results(const Plan& plan, std::vector<TF_Tensor*>& fetched, PyObject* const* values) {
    const size_t n = plan.fetches.size();
    if (plan.shape == Shape::kValue && n == 1 && plan.slots[0].first == 0) return FromTensor(fetched[0]);
    std::vector<nb::object> arrays(n);
    struct Guard {
      std::vector<TF_Tensor*>& tensors;
      size_t next = 0;
      ~Guard() {
        for (size_t i = next; i < tensors.size(); ++i) {
          if (tensors[i]) Api().DeleteTensor(tensors[i]);
        }
      }
    } guard{fetched};
    for (size_t i = 0; i < n; ++i) {
      guard.next = i + 1;
      arrays[i] = FromTensor(fetched[i]);
    }
    const auto leaf = [&](const std::pair<int, int>& slot) -> nb::object {
      if (slot.first >= 0) return arrays[static_cast<size_t>(slot.first)];
      if (slot.second >= 0) {
        const TF_DataType type = plan.feeds[static_cast<size_t>(slot.second)].type;
        const nb::object dtype = nb::borrow(PyList_GetItem(registry().dtypes.ptr(), type));
        if (type == TF_BFLOAT16) {
          return nb::module_::import_("millrace.framework.numpy_cast")
              .attr("cast")(nb::borrow(values[slot.second]), dtype);
        }
        return nb::module_::import_("numpy").attr("asarray")(
            nb::borrow(values[slot.second]), dtype.attr("as_numpy_dtype"));
      }
      return nb::none();
    };
    if (plan.shape == Shape::kValue) return leaf(plan.slots[0]);
    nb::list list;
    for (const auto& slot : plan.slots) list.append(leaf(slot));
    if (plan.shape == Shape::kList) return list;
    if (plan.shape == Shape::kTuple) return nb::tuple(list);
    return plan.build(list);
  }

  static constexpr int kGrowthsToWarn = 3;

  nb::object graph_;
  Graph* graph_state_ = nullptr;
  TF_Session* session_ = nullptr;
  bool closed_ = false;
  std::unordered_map<Key, std::shared_ptr<Plan>, KeyHash> plans_;
  std::shared_ptr<Plan> last_plan_;
  Key last_key_;
  size_t known_operations_ = 0;  // that the graph had objects for, at the last run
  size_t end_of_graph_ = 0;      // then
  bool growth_warned_ = false;
  std::unordered_map<std::string, int> growths_;  // line that added operations -> before how many runs
};

// What make_callable returns. While something records steps, the session's _run_recorded runs it.
class Callable {
 public:
  // recorders: the list of what records steps of all sessions.
  Callable(nb::object session, std::shared_ptr<Plan> plan, nb::list recorders)
      : session_(std::move(session)), plan_(std::move(plan)), recorders_(std::move(recorders)) {}
  nb::object Call(nb::args args) const {
    if (plan_ && PyList_GET_SIZE(recorders_.ptr()) > 0) {
      return session_.attr("_run_recorded_callable")(nb::find(this), args);
    }
    return CallWith(args, nb::none(), nb::none());
  }
  // options: an encoded RunOptions; metadata: takes an encoded RunMetadata. Both may be None.
  nb::object CallWith(nb::tuple args, nb::handle options, nb::handle metadata) const {
    if (!plan_) throw std::runtime_error("The session of this callable is gone.");
    if (args.size() != plan_->feeds.size()) {
      throw nb::type_error(
          ("This callable takes " + std::to_string(plan_->feeds.size()) + " values, got " + std::to_string(args.size()))
              .c_str());
    }
    DrainReleased();
    PyObject* const* values = PySequence_Fast_ITEMS(args.ptr());
    return nb::inst_ptr<Session>(session_)->RunPlan(*plan_, values, args.size(), options, metadata);
  }

  int Traverse(visitproc visit, void* arg) const {
    Py_VISIT(session_.ptr());
    Py_VISIT(recorders_.ptr());
    return plan_ && plan_.use_count() == 1 ? plan_->Traverse(visit, arg) : 0;
  }
  void Clear() {
    session_.reset();
    auto dropped = std::exchange(plan_, nullptr);
  }

 private:
  nb::object session_;
  std::shared_ptr<Plan> plan_;
  nb::list recorders_;
};

int TraverseSession(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  MR_VISIT_ATTRIBUTES();
  return nb::inst_ready(self) ? nb::inst_ptr<Session>(self)->Traverse(visit, arg) : 0;
}
int ClearSession(PyObject* self) {
  ClearAttributes(self);
  if (nb::inst_ready(self)) nb::inst_ptr<Session>(self)->Clear();
  return 0;
}
PyType_Slot session_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseSession)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearSession)},
    {0, nullptr}};

int TraverseCallable(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Callable>(self)->Traverse(visit, arg) : 0;
}
int ClearCallable(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Callable>(self)->Clear();
  return 0;
}
PyType_Slot callable_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseCallable)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearCallable)},
    {0, nullptr}};

}  // namespace

TF_Session* SessionOf(nb::handle session) { return nb::inst_ptr<Session>(session)->get(); }

void DefineSession(nb::module_& m) {
  nb::class_<Session>(m, "Session", nb::type_slots(session_slots), nb::dynamic_attr(), nb::is_weak_referenceable())
      .def(nb::init<nb::object, const std::string&, nb::bytes>())
      .def_prop_ro("graph", &Session::graph, "The graph that it runs.")
      .def_prop_ro("_closed", &Session::closed)
      .def("_close", &Session::Close)
      .def("_run", &Session::Run, nb::arg("fetches").none(), nb::arg("feeds").none(), nb::arg("resolve"),
           nb::arg("options").none(), nb::arg("metadata").none())
      .def("_devices", &Session::Devices)
      .def("_device_incarnations", &Session::Incarnations)
      .def("_random_state", &Session::RandomState)
      .def("_set_random_state", &Session::SetRandomState)
      .def_static("_reset", &Session::Reset)
      .def("_start_partial", &Session::StartPartial)
      .def("_explain", &Session::Explain)
      .def("_run_partial", &Session::RunPartial, nb::arg("handle"), nb::arg("fetches").none(), nb::arg("feeds").none(),
           nb::arg("resolve"))
      .def(
          "_callable",
          [](nb::object self, nb::handle fetches, nb::dict feeds, nb::handle resolve, nb::list recorders) {
            auto* session = nb::inst_ptr<Session>(self);
            return Callable(self, session->MakePlan(fetches, feeds, resolve), std::move(recorders));
          },
          nb::arg("fetches").none(), nb::arg("feeds"), nb::arg("resolve"), nb::arg("recorders"));
  nb::class_<Callable>(m, "Callable", nb::type_slots(callable_slots))
      .def("__call__", &Callable::Call)
      .def("_run", &Callable::CallWith, nb::arg("values"), nb::arg("options").none(), nb::arg("metadata").none());
}

}  // namespace millrace::python
