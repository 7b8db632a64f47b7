// SPDX-License-Identifier: Apache-2.0
// Two variables on two parameter servers, gradients from every worker, one step for all of it. After any error the
// chief drops all state of the cluster and goes on from its newest checkpoint that can be read.
#include <algorithm>
#include <cstring>

#include "client/local_session.h"
#include "device/cpu/cpu_device.h"
#include "io/checkpoint_state.h"
#include "simulation/training_client.h"

namespace millrace {
namespace {

constexpr int kLongest = 64;  // steps that the reference has
constexpr int kMostWorkers = 4;

struct Model {
  Output batch, loss, step;
  std::vector<Output> state;  // weights and the number of the step, as variables
  Node* train = nullptr;
  Node* init = nullptr;

  // `place`: on the tasks of a cluster, else on one device.
  void Build(const GraphBuilder& b, int num_ps, int num_workers, bool place) {
    const auto on = [&](const char* job, int i) { return place ? b.WithDevice(OnTask(job, i)) : b; };
    const GraphBuilder first = on("ps", 0), last = on("ps", num_ps - 1);
    const auto variable = [&](const GraphBuilder& where, const char* name, DType dtype, const Shape& shape) {
      return where.WithName(name).Op("VariableV2", {}, {{"shape", PartialShape(shape)}, {"dtype", dtype}});
    };
    const Output w = variable(first, "w", DType::kFloat, Shape::Vector(4));
    const Output v = variable(last, "v", DType::kFloat, Shape::Vector(4));
    const Output n = variable(first, "n", DType::kInt64, Shape());
    state = {w, v, n};
    const Output w_read = first.Identity(w), v_read = last.Identity(v);
    batch = b.WithName("batch").Op("Placeholder", {}, {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
    std::vector<Output> dw, dv, losses;
    for (int k = 0; k < num_workers; ++k) {
      const GraphBuilder at = on("worker", k);
      const float c = 0.3f + 0.17f * static_cast<float>(k);
      const Output x = at.Op("Sin", {at.Mul(at.Add(batch, at.Scalar(c)), at.Vector<float>({0.7f, 1.3f, -0.9f, 2.1f}))});
      const Output y = at.Op("Tanh", {at.Add(at.Mul(w_read, x), v_read)});
      const Output error = at.Sub(y, at.Op("Cos", {x}));
      losses.push_back(at.Op("Sum", {at.Mul(error, error), at.Scalar<int32_t>(0)}));
      const Output back = at.Mul(error, at.Sub(at.Scalar(1.0f), at.Mul(y, y)));
      dw.push_back(at.Mul(back, x));
      dv.push_back(back);
    }
    const auto sum = [](const GraphBuilder& where, const std::vector<Output>& parts) {
      Output total = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) total = where.Add(total, parts[i]);
      return total;
    };
    loss = sum(on("worker", 0), losses);
    const auto update = [&](const GraphBuilder& where, Output to, const std::vector<Output>& by) {
      return where.OpNode("AssignSub", {to, where.Mul(sum(where, by), where.Scalar(0.05f))});
    };
    Node* const update_w = update(first, w, dw);
    Node* const update_v = update(last, v, dv);
    step = first.WithControl({update_w, update_v}).Op("AssignAdd", {n, first.Scalar<int64_t>(1)});
    train = step.node;
    Node* const init_w = first.OpNode("Assign", {w, first.Vector<float>({0.1f, -0.2f, 0.3f, -0.4f})});
    Node* const init_v = last.OpNode("Assign", {v, last.Vector<float>({0.5f, 0.6f, -0.7f, 0.8f})});
    Node* const init_n = first.OpNode("Assign", {n, first.Scalar<int64_t>(0)});
    init = b.WithControl({init_w, init_v, init_n}).OpNode("NoOp", {});
  }
};

std::string BytesOf(const Tensor& t) { return std::string(static_cast<const char*>(t.raw()), t.TotalBytes()); }

// What a process alone gets: of each step the loss, and the weights before it.
struct Reference {
  std::vector<std::string> loss, w, v;
};

StatusOr<Reference> FindReference(int num_ps, int num_workers) {
  RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  Model model;
  {
    const GraphLock lock(&graph->mu);
    const GraphBuilder b(&graph->graph);
    model.Build(b, num_ps, num_workers, /*place=*/false);
    MR_RETURN_IF_ERROR(b.status());
  }
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, System::Default().NewSession(graph, {}, ""));
  std::vector<Tensor> out;
  Node* const init[] = {model.init};
  MR_RETURN_IF_ERROR(session->Run(nullptr, {}, {}, {}, init, &out, nullptr));
  Reference reference;
  for (int i = 0; i <= kLongest; ++i) {
    MR_RETURN_IF_ERROR(session->Run(nullptr, {}, {}, {model.state[0], model.state[1]}, {}, &out, nullptr));
    reference.w.push_back(BytesOf(out[0]));
    reference.v.push_back(BytesOf(out[1]));
    const Tensor batch = Tensor::Scalar(static_cast<float>(i));
    Node* const train[] = {model.train};
    MR_RETURN_IF_ERROR(session->Run(nullptr, {model.batch}, {batch}, {model.loss}, train, &out, nullptr));
    reference.loss.push_back(BytesOf(out[0]));
  }
  return reference;
}

const StatusOr<Reference>& ReferenceOf(int num_ps, int num_workers) {
  static std::map<std::pair<int, int>, StatusOr<Reference>> known;
  const auto at = known.find({num_ps, num_workers});
  if (at != known.end()) return at->second;
  return known.emplace(std::pair(num_ps, num_workers), FindReference(num_ps, num_workers)).first->second;
}

class SynchronousTraining final : public Training {
 public:
  SynchronousTraining(SimCluster& cluster, const TrainingPlan& plan, const Reference* reference)
      : Training(cluster, plan), reference_(reference) {}

  void SetPrograms() override {
    cluster_.worker(0).SetProgram([this](SimTask& task) { RunChief(task, task.life()); });
  }
  bool is_over() const override { return is_over_; }

 private:
  void RunChief(SimTask& task, int64_t life) {
    if (plan_.chief_lies) task.host().disk().SetLies(true);
    while (!is_over_ && GoesOn(task, life)) {
      const Status s = RunUntilError(task, life);
      if (!GoesOn(task, life)) return;  // of a machine that has died
      if (s.ok()) continue;
      cluster_.Note(absl::StrCat("the chief: ", s.ToString()));
      if (!MayBe(s)) return;
      Sleep(task, absl::Seconds(1));
    }
  }

  Status RunUntilError(SimTask& task, int64_t life) {
    Client client(task, plan_.step_timeout);
    Model model;
    OtherWork others;
    MR_RETURN_IF_ERROR(client.Add([&](const GraphBuilder& b) {
      model.Build(b, cluster_.num_ps(), cluster_.num_workers(), true);
      if (plan_.does_others) others.Build(b, cluster_.num_ps(), cluster_.num_workers(), 0);
    }));
    MR_RETURN_IF_ERROR(client.AddSaver());
    ++num_recoveries;
    MR_RETURN_IF_ERROR(client.ResetCluster());
    MR_RETURN_IF_ERROR(client.Open());
    MR_RETURN_IF_ERROR(Recover(task, client, model));
    MR_ASSIGN_OR_RETURN(int64_t step, CheckState(client, model));
    while (step < plan_.num_steps && GoesOn(task, life)) {
      Sleep(task, plan_.think_time);
      if (DoesOtherWorkNow()) MR_RETURN_IF_ERROR(DoOtherWork(task, life, client, others));
      if (!GoesOn(task, life)) break;
      const Tensor batch = Tensor::Scalar(static_cast<float>(step));
      MR_ASSIGN_OR_RETURN(
          const std::vector<Tensor> got, client.Run({model.loss, model.step}, {}, {model.batch}, {batch}));
      if (!GoesOn(task, life)) break;
      if (BytesOf(got[0]) != reference_->loss[static_cast<size_t>(step)]) Fail(absl::StrCat("the loss of step ", step));
      ++step;
      if (const int64_t said = *got[1].ScalarValue<int64_t>(); said != step) {
        Fail(absl::StrCat("step ", said, " where ", step, " was due"));
      }
      cluster_.Note(absl::StrCat("the chief has done step ", step));
      if (step % plan_.save_every == 0) MR_RETURN_IF_ERROR(Save(task, life, client, step));
    }
    if (!GoesOn(task, life)) return absl::OkStatus();
    MR_RETURN_IF_ERROR(CheckState(client, model).status());
    if (GoesOn(task, life)) is_over_ = true;
    return absl::OkStatus();
  }

  Status Save(SimTask& task, int64_t life, Client& client, int64_t step) {
    MR_RETURN_IF_ERROR(task.host().CreateDirs(kCheckpointFolder));
    MR_RETURN_IF_ERROR(client.saver->Save(*client.session, absl::StrCat(kCheckpointFolder, "/model"), step).status());
    if (!GoesOn(task, life)) return absl::OkStatus();
    ++num_saves;
    saved_ = std::max(saved_, step);
    cluster_.Note(absl::StrCat("saved step ", step));
    return absl::OkStatus();
  }

  // The newest checkpoint that can be read, or the beginning.
  Status Recover(SimTask& task, Client& client, const Model& model) {
    const StatusOr<CheckpointList> list = ReadCheckpointState(task.host(), kCheckpointFolder);
    std::vector<std::string> candidates;
    if (list.ok()) candidates = list->all;
    if (!list.ok() && !absl::IsNotFound(list.status()) && !plan_.chief_lies) return list.status();
    while (!candidates.empty()) {
      const Status s = client.saver->Restore(*client.session, candidates.back());
      cluster_.Note(absl::StrCat("restore ", candidates.back(), ": ", s.ToString()));
      if (s.ok()) {
        ++num_restores;
        return s;
      }
      const bool is_unreadable =
          absl::IsDataLoss(s) || absl::IsNotFound(s) || absl::IsOutOfRange(s) || absl::IsInvalidArgument(s);
      if (!is_unreadable || !plan_.chief_lies) return s;
      candidates.pop_back();
    }
    return client.Run({}, {model.init}).status();
  }

  // The number of steps that the state has, which is that of the reference.
  StatusOr<int64_t> CheckState(Client& client, const Model& model) {
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> got, client.Run(model.state));
    const int64_t step = *got[2].ScalarValue<int64_t>();
    if (step < 0 || step > plan_.num_steps) {
      Fail(absl::StrCat("the state says step ", step));
      return Internal("no such step");
    }
    if (BytesOf(got[0]) != reference_->w[static_cast<size_t>(step)]) Fail(absl::StrCat("w of step ", step));
    if (BytesOf(got[1]) != reference_->v[static_cast<size_t>(step)]) Fail(absl::StrCat("v of step ", step));
    if (step < saved_ && !plan_.chief_lies)
      Fail(absl::StrCat("step ", saved_, " was saved, and step ", step, " is found"));
    return step;
  }

  const Reference* const reference_;
  bool is_over_ = false;
  int64_t saved_ = 0;  // the step of the newest checkpoint that was acknowledged
};

}  // namespace

std::unique_ptr<Training> NewSynchronousTraining(SimCluster& cluster, const TrainingPlan& plan) {
  const StatusOr<Reference>& reference = ReferenceOf(cluster.num_ps(), cluster.num_workers());
  return reference.ok() ? std::make_unique<SynchronousTraining>(cluster, plan, &*reference) : nullptr;
}

}  // namespace millrace
