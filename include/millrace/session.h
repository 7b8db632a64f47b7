// SPDX-License-Identifier: Apache-2.0
// Sessions of the C++ client.
#pragma once

#include "millrace/graph.h"
#include "millrace/wire.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

namespace internal {

// What a call writes into a buffer, as text; or text for a call to read.
class TextBuffer {
 public:
  TextBuffer() : buffer_(Api().NewBuffer()) {}
  explicit TextBuffer(const std::string& text) : buffer_(Api().NewBufferFromString(text.data(), text.size())) {}
  ~TextBuffer() { Api().DeleteBuffer(buffer_); }
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;
  operator TF_Buffer*() const { return buffer_; }  // NOLINT: an argument of the C API
  std::string Text() const {
    return buffer_->data ? std::string(static_cast<const char*>(buffer_->data), buffer_->length) : std::string();
  }

 private:
  TF_Buffer* buffer_;
};

}  // namespace internal

// A value in place of what the graph computes, in one step: of the output's type, and of a shape that fits what is
// known of its.
struct Feed {
  Output to;
  Tensor value;
};

// How a session runs: the fields of TensorFlow's ConfigProto that it obeys. 0: as many threads as there are cores, no
// limit of time.
struct Config {
  std::map<std::string, int> device_count = {};  // {{"CPU", 2}}
  // Threads that may work at one op.
  int intra_op_parallelism_threads = 0;
  // Ops that may run at once; 1: all of a step on its caller's thread.
  int inter_op_parallelism_threads = 0;
  // A node whose device is not there, or has no kernel for it, runs on one that has; otherwise that is an error.
  bool allow_soft_placement = false;
  // The log says where each node lies.
  bool log_device_placement = false;
  int64_t operation_timeout_in_ms = 0;  // of each step
  // Each step runs on its caller's thread alone, and among nodes that are ready the order is drawn from the seed (0: as
  // the graph was stated): the same program gives the same bits, also where the graph leaves the order open. For
  // sessions in this process.
  bool ordered = false;
  // For `ordered`.
  int64_t order_seed = 0;
  std::vector<std::string> device_filters = {};  // the tasks of a cluster that a session looks at: "/job:ps"

  // An encoded ConfigProto, for SessionOptions::config.
  std::string Encode() const {
    internal::Encoder e;
    for (const auto& [type, count] : device_count) e.Message(1, internal::Encoder().Text(1, type).Int(2, count));
    e.Int(2, intra_op_parallelism_threads).Int(5, inter_op_parallelism_threads);
    for (const std::string& filter : device_filters) e.Message(4, filter);
    e.Int(7, allow_soft_placement).Int(8, log_device_placement).Int(11, operation_timeout_in_ms);
    e.Int(1000, ordered).Int(1001, order_seed);
    return e.bytes();
  }
};

// Where a session runs its steps, and how.
struct SessionOptions {
  std::string target = {};  // "" or "local": this process; "grpc://host:port": a task of a cluster
  std::string config = {};  // an encoded ConfigProto, as Config makes one
};

// What a step records of its ops: kNone nothing, each other level all that a trace has.
enum class TraceLevel : int { kNone = 0, kSoftware = 1, kHardware = 2, kFull = 3 };

// Of one step.
struct RunOptions {
  int64_t timeout_in_ms = 0;  // TF_DEADLINE_EXCEEDED for a step that takes longer; 0: as the session says
  // With a RunMetadata to be filled.
  TraceLevel trace_level = TraceLevel::kNone;
  // The metadata get the graphs that devices run.
  bool output_partition_graphs = false;
  // The step waits until the session's steps that change variables have ended, while those that come wait for it: all
  // variables that it reads are of one moment. TF_FAILED_PRECONDITION where that cannot be had: variables on servers
  // that other sessions use too, open partial runs.
  bool between_steps = false;

  // An encoded RunOptions.
  std::string Encode() const {
    return internal::Encoder()
        .Int(1, static_cast<int>(trace_level))
        .Int(2, timeout_in_ms)
        .Int(5, output_partition_graphs)
        .Int(1000, between_steps)
        .bytes();
  }
};

// What a step tells of itself: an encoded message of TensorFlow's, which timeline.h reads.
struct RunMetadata {
  // A RunMetadata; empty where nothing was asked for.
  std::string encoded = {};
};

// A device that a session may use.
struct Device {
  std::string name, type;  // "/job:localhost/replica:0/task:0/device:CPU:0", "CPU"
  // Its memory; of a CPU the machine's.
  int64_t memory_bytes = 0;
  // Another number each time that its task begins anew.
  uint64_t incarnation = 0;
};

class Callable;
class PartialRun;

// Runs parts of a graph, also those added after the session was made. Several threads may run it at once.
class Session {
 public:
  Session() = default;  // none
  // Of a graph, which it keeps alive. Without exceptions, status() tells what went wrong.
  explicit Session(const Graph& graph, const SessionOptions& options = {}) {
    internal::CallStatus status;
    TF_SessionOptions* o = Api().NewSessionOptions();
    Api().SetTarget(o, options.target.c_str());
    Api().SetConfig(o, options.config.data(), options.config.size(), status);
    if (status.ok()) Hold(Api().NewSession(graph.get(), o, status));
    Api().DeleteSessionOptions(o);
    SetStatus(status.Get());
  }
  // Loads a SavedModel directory's meta graph with exactly these tags into `graph`, which must be empty; saved_model.h
  // does so with its signatures. `meta_graph` (may be null) gets the encoded MetaGraphDef.
  static Returned<Session> Load(const std::string& directory, const std::vector<std::string>& tags, Graph* graph,
                                const SessionOptions& options = {}, std::string* meta_graph = nullptr) {
    internal::CallStatus status;
    std::vector<const char*> raw;
    for (const std::string& tag : tags) raw.push_back(tag.c_str());
    Session session;
    const internal::TextBuffer meta;
    TF_SessionOptions* o = Api().NewSessionOptions();
    Api().SetTarget(o, options.target.c_str());
    Api().SetConfig(o, options.config.data(), options.config.size(), status);
    if (status.ok()) {
      session.Hold(Api().LoadSessionFromSavedModel(
          o, nullptr, directory.c_str(), raw.data(), static_cast<int>(raw.size()), graph->get(), meta, status));
    }
    Api().DeleteSessionOptions(o);
    if (meta_graph) *meta_graph = meta.Text();
    return internal::Give(status.Get(), std::move(session));
  }

  // One step: the values of `fetches`, with `feeds` in place of what the graph computes; `targets` run too. `metadata`
  // (may be null) gets what the options ask for.
  Returned<std::vector<Tensor>> Run(
      const std::vector<Feed>& feeds, const std::vector<Output>& fetches, const std::vector<Operation>& targets = {},
      const RunOptions& options = {}, RunMetadata* metadata = nullptr) const {
    std::vector<Tensor> values;
    const Status s = TryRun(feeds, fetches, targets, &values, options, metadata);
    return internal::Give(s, std::move(values));
  }
  // The same without feeds.
  Returned<std::vector<Tensor>> Run(const std::vector<Output>& fetches) const { return Run({}, fetches); }
  // One step that fetches nothing.
  Done RunTargets(const std::vector<Operation>& targets, const std::vector<Feed>& feeds = {}) const {
    std::vector<Tensor> none;
    return internal::Finish(TryRun(feeds, {}, targets, &none));
  }
  // The same for who wants a status where others throw.
  Status TryRun(const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                const std::vector<Operation>& targets, std::vector<Tensor>* values, const RunOptions& options = {},
                RunMetadata* metadata = nullptr) const {
    std::vector<TF_Output> inputs;
    std::vector<TF_Tensor*> given;
    std::vector<const TF_Operation*> operations;
    for (const Feed& feed : feeds) {
      inputs.push_back(feed.to.get());
      given.push_back(feed.value.get());
    }
    for (const Operation& target : targets) operations.push_back(target.get());
    return RunRaw(inputs, given, Graph::Raw(fetches), operations, values, options.Encode(), metadata);
  }

  // A step that is stated once: calls give the values of `feeds`, in their order.
  Callable MakeCallable(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                        const std::vector<Operation>& targets = {}, const RunOptions& options = {}) const;
  // Begins a step that gets its feeds and gives its fetches in several calls.
  Returned<PartialRun> SetupPartialRun(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                                       const std::vector<Operation>& targets = {}) const;

  // The devices that the session may use, those of a cluster's other tasks too.
  Returned<std::vector<Device>> Devices() const {
    std::vector<Device> devices;
    if (!session_) return internal::Give(Missing(), devices);
    internal::CallStatus status;
    TF_DeviceList* list = Api().SessionListDevices(session_.get(), status);
    for (int i = 0; status.ok() && i < Api().DeviceListCount(list); ++i) {
      Device& d = devices.emplace_back();
      d.name = OrEmpty(Api().DeviceListName(list, i, status));
      d.type = OrEmpty(Api().DeviceListType(list, i, status));
      d.memory_bytes = Api().DeviceListMemoryBytes(list, i, status);
      d.incarnation = Api().DeviceListIncarnation(list, i, status);
    }
    Api().DeleteDeviceList(list);
    return internal::Give(status.Get(), std::move(devices));
  }

  // What the compiler makes of such a step, to be read: stages, partitions, where each node lies and why.
  Returned<std::string> Explain(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                                const std::vector<Operation>& targets = {}) const {
    if (!session_) return internal::Give(Missing(), std::string());
    const std::vector<TF_Output> inputs = Graph::Raw(feeds), outputs = Graph::Raw(fetches);
    std::vector<const TF_Operation*> operations;
    for (const Operation& target : targets) operations.push_back(target.get());
    internal::CallStatus status;
    internal::TextBuffer text;
    Api().SessionExplain(
        session_.get(), inputs.data(), static_cast<int>(inputs.size()), outputs.data(),
        static_cast<int>(outputs.size()), operations.data(), static_cast<int>(operations.size()), text, status);
    return internal::Give(status.Get(), text.Text());
  }

  // Where random ops are in their streams: to be kept beside a checkpoint, and set in the session that goes on from it,
  // between steps.
  Returned<std::string> RandomState() const {
    internal::CallStatus status;
    internal::TextBuffer state;
    Api().SessionRandomState(session_.get(), state, status);
    return internal::Give(status.Get(), state.Text());
  }
  // Sets what RandomState gave.
  Done SetRandomState(const std::string& state) const {
    internal::CallStatus status;
    Api().SetSessionRandomState(session_.get(), state.data(), state.size(), status);
    return internal::Finish(status.Get());
  }

  // Cancels what runs; later runs fail with TF_CANCELLED.
  Done Close() {
    internal::CallStatus status;
    Api().CloseSession(session_.get(), status);
    return internal::Finish(status.Get());
  }
  // Whether there is one.
  explicit operator bool() const { return session_ != nullptr; }
  const Status& status() const { return status_; }  // of the making
  // For the C API; it stays this session's.
  TF_Session* get() const { return session_.get(); }

 private:
  friend class Callable;
  friend class PartialRun;
  static std::string OrEmpty(const char* text) { return text ? text : ""; }
  Status Missing() const { return status_.ok() ? Status(TF_FAILED_PRECONDITION, "there is no session") : status_; }
  Status RunRaw(const std::vector<TF_Output>& inputs, const std::vector<TF_Tensor*>& given,
                const std::vector<TF_Output>& outputs, const std::vector<const TF_Operation*>& targets,
                std::vector<Tensor>* values, const std::string& options, RunMetadata* metadata) const {
    if (!session_) return Missing();
    internal::CallStatus status;
    std::vector<TF_Tensor*> results(outputs.size());
    const internal::TextBuffer told, how(options);
    TF_Buffer* const none = nullptr;
    Api().SessionRun(session_.get(), options.empty() ? none : how, inputs.data(), given.data(),
                     static_cast<int>(inputs.size()), outputs.data(), results.data(), static_cast<int>(outputs.size()),
                     targets.data(), static_cast<int>(targets.size()), metadata ? told : none, status);
    if (metadata) metadata->encoded = told.Text();
    values->clear();
    for (TF_Tensor* t : results) values->push_back(t ? Tensor(t) : Tensor());
    return status.Get();
  }
  void Hold(TF_Session* s) {
    if (s == nullptr) return;
    session_ = std::shared_ptr<TF_Session>(s, [](TF_Session* p) {
      internal::CallStatus status;
      Api().DeleteSession(p, status);
    });
  }
  void SetStatus(Status s) {
    status_ = std::move(s);
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }

  std::shared_ptr<TF_Session> session_;
  Status status_;
};

// A step of a session, which it keeps. Several threads may call it at once.
class Callable {
 public:
  Callable() = default;  // none
  // The values of the fetches. TF_INVALID_ARGUMENT unless there is a value for each feed.
  Returned<std::vector<Tensor>> operator()(const std::vector<Tensor>& values = {},
                                           RunMetadata* metadata = nullptr) const {
    std::vector<Tensor> results;
    if (values.size() != feeds_.size()) {
      return internal::Give(
          Status(TF_INVALID_ARGUMENT,
                 "the step wants " + std::to_string(feeds_.size()) + " values, got " + std::to_string(values.size())),
          results);
    }
    std::vector<TF_Tensor*> given;
    for (const Tensor& t : values) given.push_back(t.get());
    const Status s = session_.RunRaw(feeds_, given, fetches_, targets_, &results, options_, metadata);
    return internal::Give(s, std::move(results));
  }

 private:
  friend class Session;
  Session session_;
  std::vector<TF_Output> feeds_, fetches_;
  std::vector<const TF_Operation*> targets_;
  std::string options_;
};

inline Callable Session::MakeCallable(const std::vector<Output>& feeds, const std::vector<Output>& fetches,
                                      const std::vector<Operation>& targets, const RunOptions& options) const {
  Callable c;
  c.session_ = *this;
  c.feeds_ = Graph::Raw(feeds);
  c.fetches_ = Graph::Raw(fetches);
  for (const Operation& target : targets) c.targets_.push_back(target.get());
  c.options_ = options.Encode();
  return c;
}

// A step under way. It ends with its last fetch, with an error, or with the last copy of this.
class PartialRun {
 public:
  PartialRun() = default;  // none
  // Gives some of the feeds, each once in all, and takes some of the fetches, which must not need others.
  Returned<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const std::vector<Output>& fetches) const {
    std::vector<Tensor> values;
    if (!handle_) return internal::Give(session_.Missing(), values);
    std::vector<TF_Output> inputs;
    std::vector<TF_Tensor*> given, results(fetches.size());
    for (const Feed& feed : feeds) {
      inputs.push_back(feed.to.get());
      given.push_back(feed.value.get());
    }
    const std::vector<TF_Output> outputs = Graph::Raw(fetches);
    internal::CallStatus status;
    Api().SessionPRun(session_.get(), handle_->c_str(), inputs.data(), given.data(), static_cast<int>(inputs.size()),
                      outputs.data(), results.data(), static_cast<int>(outputs.size()), nullptr, 0, status);
    for (TF_Tensor* t : results) values.push_back(t ? Tensor(t) : Tensor());
    return internal::Give(status.Get(), std::move(values));
  }

 private:
  friend class Session;
  Session session_;
  std::shared_ptr<std::string> handle_;
};

inline Returned<PartialRun> Session::SetupPartialRun(
    const std::vector<Output>& feeds, const std::vector<Output>& fetches, const std::vector<Operation>& targets) const {
  PartialRun run;
  run.session_ = *this;
  if (!session_) return internal::Give(Missing(), run);
  const std::vector<TF_Output> inputs = Graph::Raw(feeds), outputs = Graph::Raw(fetches);
  std::vector<const TF_Operation*> operations;
  for (const Operation& target : targets) operations.push_back(target.get());
  internal::CallStatus status;
  const char* handle = nullptr;
  Api().SessionPRunSetup(
      session_.get(), inputs.data(), static_cast<int>(inputs.size()), outputs.data(), static_cast<int>(outputs.size()),
      operations.data(), static_cast<int>(operations.size()), &handle, status);
  if (handle) {
    run.handle_ = {new std::string(handle), [session = *this](std::string* h) {
                     internal::CallStatus ignored;
                     Api().MR_ReleasePartialRun(session.get(), h->c_str(), ignored);
                     delete h;
                   }};
  }
  Api().DeletePRunHandle(handle);
  return internal::Give(status.Get(), std::move(run));
}

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
