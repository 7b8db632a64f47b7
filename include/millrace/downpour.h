// SPDX-License-Identifier: Apache-2.0
// Downpour SGD: replicas that train copies of their own, and exchange with the parameter servers now and then.
//
//   millrace::Downpour downpour(model, {"Adagrad"}, model.ComputeGradients(loss), {"/job:ps/task:0", "/job:ps/task:1"},
//                               {.n_push = 5, .n_fetch = 5}, step);
//   const millrace::Operation init = model.Initializer();
//   if (is_chief) session.RunTargets({init}), session.RunTargets({downpour.publish()});
//   else downpour.Begin(session);
//   for (;;) downpour.Step(session, NextBatch(), {loss});
#pragma once

#include <chrono>
#include <thread>

#include "millrace/train.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// How often a replica exchanges with the servers, and how fast it learns meanwhile.
struct DownpourOptions {
  int n_push = 1, n_fetch = 1;  // steps of the replica
  // Of the replica's own copy.
  double local_learning_rate = 0.01;
};

// Each replica applies its gradients to its own copy of the parameters at once, with the local rate, and adds them up.
// Every `n_push` steps it gives the sum to the servers, whose copies, the centre, an optimizer changes (Adagrad, whose
// rates adapt on each shard, is usual); every `n_fetch` steps it takes the centre's parameters. Replicas never wait for
// each other. Of one thread at a time.
class Downpour {
 public:
  // Adds what it needs to the model's graph; optimizers have variables, so that it comes before the model's
  // Initializer, which the chief alone runs. The centre of variable i, "downpour/<variable>/center" in all replicas,
  // lies on device i of `devices`, round and round. An error in what was built is the graph's.
  Downpour(Model& model, const Optimizer& optimizer, const std::vector<Gradient>& gradients,
           const std::vector<std::string>& devices, const DownpourOptions& options = {})
      : options_(options) {
    if (options.n_push < 1 || options.n_fetch < 1) {
      model.Note(Status(
          TF_INVALID_ARGUMENT, "n_push and n_fetch must be positive, got " + std::to_string(options.n_push) + " and " +
                                   std::to_string(options.n_fetch)));
    }
    Scope s(model.scope().graph(), model.scope().prefix() + "downpour");
    std::vector<Gradient> pushed;
    std::vector<Operation> accrued, cleared, fetched, published;
    for (const Gradient& g : gradients) {
      if (!g) continue;
      const std::string device = devices.empty() ? "" : devices[pushed.size() % devices.size()];
      const Output own = g.variable.ref;
      const DType dtype = g.variable.read.dtype();
      Shape shape;
      s.graph().ShapeOf(own, &shape);
      const Scope below(s.graph(), s.prefix() + g.variable.name());
      Scope here = below.ColocateWith(Operation(own.get().oper));
      const Variable center = Add(below.WithDevice(device), "center", dtype, shape, false);
      const Variable sum = Add(here, "accrued", dtype, shape, true);
      const Output zero = here.Op("ZerosLike", {g.variable.read});
      const Output gradient = DenseGradient(here, g);
      const Output rate = here.Op("Cast", {options.local_learning_rate}, {{"DstT", dtype}});
      accrued.push_back(here.Op("AssignAdd", {sum.ref, gradient}));
      accrued.push_back(here.Op("AssignSub", {own, here.Op("Mul", {gradient, rate})}));
      cleared.push_back(here.Op("Assign", {sum.ref, zero}));
      fetched.push_back(here.Op("Assign", {own, center.read}));
      published.push_back(below.WithDevice(device).Op("Assign", {center.ref, g.variable.read}));
      Gradient of_center;
      of_center.dense = sum.read;
      of_center.variable = center;
      pushed.push_back(of_center);
      centers_.push_back(center);
    }
    if (pushed.empty()) model.Note(Status(TF_INVALID_ARGUMENT, "Downpour: no variable has a gradient"));
    if (!s.status().ok()) return;
    const Scope first = s.WithDevice(devices.empty() ? "" : devices[0]);
    pushes_ = Add(first, "pushes", DType::kInt64, {}, false);
    published.push_back(Scope(first).Op("Assign", {pushes_.ref, int64_t{0}}));
    const auto group = [&](const char* name, const std::vector<Operation>& all) {
      return s.WithControl(all).WithName(name).Op("NoOp", {});
    };
    train_ = group("train", accrued);
    clear_ = group("clear", cleared);
    fetch_ = group("fetch", fetched);
    publish_ = group("publish", published);
    push_ = model.ApplyGradients(optimizer, pushed, pushes_);
  }

  // The parameters on the servers, in the order of the model's.
  const std::vector<Variable>& centers() const { return centers_; }
  // The count of all replicas' pushes, beside the first centre.
  const Variable& pushes() const { return pushes_; }
  // Makes this replica's parameters the centre: of a chief that has not restored the centre.
  const Operation& publish() const { return publish_; }

  // Waits until the centre is there and has had `warm_start` pushes, and takes its parameters. For at most `patience`,
  // then TF_DEADLINE_EXCEEDED.
  Done Begin(const Session& session, int64_t warm_start = 0,
             std::chrono::milliseconds patience = std::chrono::minutes(10)) const {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      std::vector<Tensor> pushes;
      Status s = Run(session, {}, {pushes_.read}, {}, &pushes);
      if (s.ok() && pushes[0].data<int64_t>()[0] >= warm_start) {
        return internal::Finish(Run(session, {}, {}, {fetch_}, nullptr));
      }
      if (!s.ok() && s.code() != TF_FAILED_PRECONDITION) return internal::Finish(s);
      if (std::chrono::steady_clock::now() >= end) {
        return internal::Finish(
            Status(TF_DEADLINE_EXCEEDED, "Downpour: the chief has not trained so far: " + s.message()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  // One step of this replica; what `fetches` are in it.
  Returned<std::vector<Tensor>> Step(const Session& session, const std::vector<Feed>& feeds,
                                     const std::vector<Output>& fetches = {}) {
    std::vector<Tensor> got;
    Status s = steps_ == 0 ? Run(session, {}, {}, {clear_}, nullptr) : Status();
    if (s.ok()) s = Run(session, feeds, fetches, {train_}, &got);
    if (s.ok()) ++steps_;
    if (s.ok() && steps_ % options_.n_push == 0) s = Push(session);
    if (s.ok() && steps_ % options_.n_fetch == 0) s = Run(session, {}, {}, {fetch_}, nullptr);
    return internal::Give(s, std::move(got));
  }

 private:
  static Variable Add(Scope s, const char* name, DType dtype, const Shape& shape, bool is_local) {
    for (const int64_t d : shape) {
      if (d < 0)
        s.Note(Status(TF_INVALID_ARGUMENT, "Downpour needs variables of known shape, for " + s.prefix() + name));
    }
    const Operation op = s.WithName(name).Op(
        "VariableV2", {}, {{"dtype", dtype}, {"shape", Attr::OfShape(shape)}, {"_local", is_local}});
    if (!op) return {};
    return {op, Scope(s.graph(), op.name()).ColocateWith(op).WithName("read").Op("Identity", {op})};
  }
  Status Push(const Session& session) const {
    const Status s = Run(session, {}, {}, {push_}, nullptr);
    return s.ok() ? Run(session, {}, {}, {clear_}, nullptr) : s;
  }
  static Status Run(const Session& session, const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                    const std::vector<Operation>& targets, std::vector<Tensor>* values) {
#if MILLRACE_EXCEPTIONS
    try {
      std::vector<Tensor> got = session.Run(feeds, fetches, targets);
      if (values) *values = std::move(got);
    } catch (const Error& e) {
      return Status(e.code(), e.what());
    }
#else
    Returned<std::vector<Tensor>> got = session.Run(feeds, fetches, targets);
    if (!got.ok()) return got.status();
    if (values) *values = *std::move(got);
#endif
    return Status();
  }

  DownpourOptions options_;
  std::vector<Variable> centers_;
  Variable pushes_;
  Operation train_, clear_, fetch_, publish_, push_;
  int64_t steps_ = 0;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
