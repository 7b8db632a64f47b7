// SPDX-License-Identifier: Apache-2.0
// A client on each worker pushes by itself: a step adds one to its own counter, on one parameter server, and to a
// common one, on another. The first worker's client saves, and brings the cluster back when it has lost its state; then
// the counters are those of a checkpoint.
//
// Of each counter is known how many pushes it has at least and at most: who began a push may have added to it, who was
// told that it went well has.
#include <algorithm>
#include <set>

#include "io/checkpoint_state.h"
#include "simulation/training_client.h"

namespace millrace {
namespace {

constexpr int64_t kAny = 1'000'000'000'000;  // pushes: nobody knows how many

class AsynchronousTraining final : public Training {
 public:
  AsynchronousTraining(SimCluster& cluster, const TrainingPlan& plan)
      : Training(cluster, plan), now_(static_cast<size_t>(cluster.num_workers())), done_(now_.size()) {}

  void SetPrograms() override {
    for (int k = 0; k < cluster_.num_workers(); ++k) {
      cluster_.worker(k).SetProgram([this, k](SimTask& task) { RunWorker(task, static_cast<size_t>(k), task.life()); });
    }
  }
  bool is_over() const override { return is_over_; }

 private:
  // Of one counter.
  struct Bounds {
    int64_t least = 0, most = 0;
  };
  using AllBounds = std::vector<Bounds>;  // by worker

  struct Model {
    std::vector<Output> counters;  // of the workers, then the common one
    Output push;                   // the own counter, after it
    Node* push_all = nullptr;
    Node* init = nullptr;

    void Build(const GraphBuilder& b, int num_ps, int num_workers, int own) {
      std::vector<Node*> inits;
      for (int k = 0; k <= num_workers; ++k) {
        const GraphBuilder at = b.WithDevice(OnTask("ps", k % num_ps));
        const Output counter = at.WithName(absl::StrCat("counter", k))
                                   .Op("VariableV2", {}, {{"shape", PartialShape::Scalar()}, {"dtype", DType::kInt64}});
        counters.push_back(counter);
        inits.push_back(at.OpNode("Assign", {counter, at.Scalar<int64_t>(0)}));
      }
      // What is added comes from the worker, so that it travels.
      const GraphBuilder here = b.WithDevice(OnTask("worker", own));
      const Output one = here.Op("Cast", {here.Op("Abs", {here.Scalar(-1.0f)})}, {{"DstT", DType::kInt64}});
      const auto add = [&](int k) {
        return b.WithDevice(OnTask("ps", k % num_ps)).Op("AssignAdd", {counters[static_cast<size_t>(k)], one});
      };
      push = add(own);
      push_all = b.WithControl({push.node, add(num_workers).node}).OpNode("NoOp", {});
      init = b.WithControl(inits).OpNode("NoOp", {});
    }
  };

  void RunWorker(SimTask& task, size_t k, int64_t life) {
    while (!is_over_ && GoesOn(task, life)) {
      const Status s = RunUntilError(task, k, life);
      if (!GoesOn(task, life)) return;  // of a machine that has died
      if (s.ok()) continue;
      cluster_.Note(absl::StrCat("worker ", k, ": ", s.ToString()));
      if (!MayBe(s)) return;
      Sleep(task, absl::Seconds(1));
    }
  }

  Status RunUntilError(SimTask& task, size_t k, int64_t life) {
    Client client(task, plan_.step_timeout);
    Model model;
    OtherWork others;
    MR_RETURN_IF_ERROR(client.Add([&](const GraphBuilder& b) {
      model.Build(b, cluster_.num_ps(), cluster_.num_workers(), static_cast<int>(k));
      if (plan_.does_others) others.Build(b, cluster_.num_ps(), cluster_.num_workers(), static_cast<int>(k));
    }));
    const bool is_chief = k == 0;
    if (is_chief) MR_RETURN_IF_ERROR(client.AddSaver());
    MR_RETURN_IF_ERROR(client.Open());
    while (!is_over_ && GoesOn(task, life)) {
      if (is_chief && is_recovering()) MR_RETURN_IF_ERROR(Recover(task, life, client, model));
      if (DoesOtherWorkNow()) MR_RETURN_IF_ERROR(DoOtherWork(task, life, client, others));
      if (!GoesOn(task, life)) return absl::OkStatus();
      Status s = done_[k] < plan_.num_steps ? Push(task, k, life, client, model) : Look(task, client, model);
      if (!GoesOn(task, life)) return absl::OkStatus();
      if (is_chief && s.ok() && done_[k] % plan_.save_every == 0) s = Save(task, life, client);
      if (is_chief && absl::IsFailedPrecondition(s)) {
        cluster_.Note(absl::StrCat("the chief: ", s.ToString()));
        s = Recover(task, life, client, model);
      }
      MR_RETURN_IF_ERROR(s);
      if (is_chief && AllAreDone()) return Finish(task, life, client, model);
      Sleep(task, plan_.think_time);
    }
    return absl::OkStatus();
  }

  bool AllAreDone() const {
    return std::all_of(done_.begin(), done_.end(), [&](int64_t n) { return n >= plan_.num_steps; });
  }

  Status Push(SimTask& task, size_t k, int64_t life, Client& client, const Model& model) {
    const int64_t epoch = epoch_;
    ++now_[k].most;
    const auto pushing = pushing_.insert(k);
    const StatusOr<std::vector<Tensor>> got = client.Run({model.push}, {model.push_all});
    pushing_.erase(pushing);
    MR_RETURN_IF_ERROR(got.status());
    if (!GoesOn(task, life)) return absl::OkStatus();
    if (epoch == epoch_ && !is_recovering()) {
      ++now_[k].least;
      Check(k, *got->front().ScalarValue<int64_t>(), absl::StrCat("the push of worker ", k));
    }
    ++done_[k];
    return absl::OkStatus();
  }

  Status Look(SimTask&, Client& client, const Model& model) {
    const int64_t epoch = epoch_;
    const AllBounds before = now_;
    MR_ASSIGN_OR_RETURN(const std::vector<Tensor> got, client.Run(model.counters));
    if (epoch == epoch_ && !is_recovering()) CheckAll(before, got, "a look");
    return absl::OkStatus();
  }

  Status Finish(SimTask& task, int64_t life, Client& client, const Model& model) {
    MR_RETURN_IF_ERROR(Look(task, client, model));
    if (GoesOn(task, life)) is_over_ = true;
    return absl::OkStatus();
  }

  Status Save(SimTask& task, int64_t life, Client& client) {
    const int64_t epoch = epoch_;
    AllBounds saved = now_;
    const std::string prefix = absl::StrCat(kCheckpointFolder, "/model-", ++num_saves_begun_);
    for (Bounds& b : saved) b.most = kAny;  // a save that fails may still read later
    checkpoints_[prefix] = saved;
    MR_RETURN_IF_ERROR(task.host().CreateDirs(kCheckpointFolder));
    MR_RETURN_IF_ERROR(client.saver->Save(*client.session, prefix).status());
    if (!GoesOn(task, life)) return absl::OkStatus();
    if (epoch == epoch_) {
      for (size_t k = 0; k < saved.size(); ++k) checkpoints_[prefix][k].most = now_[k].most;
    }
    ++num_saves;
    newest_ = num_saves_begun_;
    cluster_.Note(absl::StrCat("saved ", prefix));
    return absl::OkStatus();
  }

  // Drops all state, which ends the steps of all sessions, and takes that of the newest checkpoint.
  Status Recover(SimTask& task, int64_t life, Client& client, const Model& model) {
    ++num_recoveries;
    const std::multiset<size_t> under_way = pushing_;
    const AllBounds before = now_;
    if (!is_recovering()) ++epoch_;
    MR_RETURN_IF_ERROR(client.ResetCluster());
    MR_RETURN_IF_ERROR(client.Open());
    const StatusOr<CheckpointList> list = ReadCheckpointState(task.host(), kCheckpointFolder);
    std::vector<std::string> candidates;
    if (list.ok()) candidates = list->all;
    if (!list.ok() && !absl::IsNotFound(list.status()) && !plan_.chief_lies) return list.status();
    AllBounds restored(now_.size());
    bool is_restored = false;
    while (!candidates.empty() && !is_restored) {
      const std::string prefix = candidates.back();
      const Status s = client.saver->Restore(*client.session, prefix);
      cluster_.Note(absl::StrCat("restore ", prefix, ": ", s.ToString()));
      if (!GoesOn(task, life)) return absl::OkStatus();
      candidates.pop_back();
      is_restored = s.ok();
      const bool is_unreadable =
          absl::IsDataLoss(s) || absl::IsNotFound(s) || absl::IsOutOfRange(s) || absl::IsInvalidArgument(s);
      if (!s.ok() && (!is_unreadable || !plan_.chief_lies)) return s;
      if (is_restored) restored = checkpoints_[prefix];
      const std::string newest = absl::StrCat(kCheckpointFolder, "/model-", newest_);
      if (is_restored && !plan_.chief_lies && prefix < newest && prefix.size() <= newest.size()) {
        Fail(absl::StrCat(newest, " was saved, and ", prefix, " is the newest"));
      }
    }
    if (!is_restored) {
      if (newest_ > 0 && !plan_.chief_lies) Fail("a checkpoint was saved, and none is there");
      MR_RETURN_IF_ERROR(client.Run({}, {model.init}).status());
    }
    if (!GoesOn(task, life)) return absl::OkStatus();
    num_restores += is_restored;
    ++epoch_;  // of pushes that began before this it is not known on which side they fell
    for (size_t k = 0; k < now_.size(); ++k) {
      const int64_t begun = now_[k].most - before[k].most + static_cast<int64_t>(under_way.count(k));
      restored[k].most = std::min(restored[k].most + begun, kAny);
    }
    now_ = restored;
    return Look(task, client, model);
  }

  void Check(size_t k, int64_t value, const std::string& by) {
    if (value >= now_[k].least && value <= now_[k].most) return;
    Fail(absl::StrCat(by, " sees ", value, " pushes of worker ", k, ", want ", now_[k].least, " to ", now_[k].most));
  }
  // `before`: when the look began.
  void CheckAll(const AllBounds& before, const std::vector<Tensor>& got, const std::string& by) {
    Bounds common;
    for (size_t k = 0; k < now_.size(); ++k) {
      const int64_t value = *got[k].ScalarValue<int64_t>();
      if (value < before[k].least || value > now_[k].most) {
        Fail(absl::StrCat(
            by, " sees ", value, " pushes of worker ", k, ", want ", before[k].least, " to ", now_[k].most));
      }
      common.least += before[k].least;
      common.most += now_[k].most;
    }
    const int64_t value = *got.back().ScalarValue<int64_t>();
    if (value < common.least || value > common.most) {
      Fail(absl::StrCat(by, " sees ", value, " pushes of all, want ", common.least, " to ", common.most));
    }
  }

  AllBounds now_;              // of what the counters are
  std::vector<int64_t> done_;  // pushes that were acknowledged, also those that were lost since
  std::multiset<size_t> pushing_;
  bool is_recovering() const { return epoch_ % 2 == 1; }
  int64_t epoch_ = 0;  // counts beginnings and ends of recoveries
  std::map<std::string, AllBounds> checkpoints_;
  int64_t num_saves_begun_ = 0, newest_ = 0;
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<Training> NewAsynchronousTraining(SimCluster& cluster, const TrainingPlan& plan) {
  return std::make_unique<AsynchronousTraining>(cluster, plan);
}

}  // namespace millrace
