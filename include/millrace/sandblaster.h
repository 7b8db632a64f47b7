// SPDX-License-Identifier: Apache-2.0
// Sandblaster L-BFGS: batch optimisation over parameter servers and model replicas, led by a coordinator that has no
// parameters. Of a loss that is the sum over portions of the data.
//
//   millrace::Sandblaster sandblaster(model, 100);  // the model's variables, wherever they are
//   for (const std::string& device : workers) {
//     sandblaster.AddReplica(device, [&](Scope s, const Outputs& parameters, Output portion) { return loss; });
//   }
//   session.RunTargets({model.Initializer()});
//   const millrace::SandblasterResult result = sandblaster.Minimize(session, sessions_of_replicas);
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "millrace/lbfgs.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace internal {

// The portions of one evaluation, as they are handed out and come back. Who waits for nothing gets what others are
// still at: the first result counts. External synchronization required.
class Portions {
 public:
  explicit Portions(int64_t n) : n_(n) {
    for (int64_t p = 0; p < n; ++p) free_.push_back(p);
  }
  // A portion for this replica; -1: there is none that it could do now.
  int64_t Take(size_t replica) {
    if (is_over) return -1;
    int64_t portion = -1;
    if (!free_.empty()) {
      portion = free_.front();
      free_.pop_front();
      begun_.push_back(portion);
    } else {
      for (const int64_t p : begun_) {  // the one that fewest are at, and of these the oldest
        if (kept_.count(p) != 0 || out_[p].empty() || out_[p].count(replica) != 0) continue;
        if (portion < 0 || out_[p].size() < out_[portion].size()) portion = p;
      }
      if (portion < 0) return -1;
      ++copies;
    }
    out_[portion].insert(replica);
    return portion;
  }
  // Whether this replica is the first with the portion, and is to keep it.
  bool Wins(size_t replica, int64_t portion) {
    out_[portion].erase(replica);
    return !is_over && kept_.emplace(portion, Kept{replica}).second;
  }
  void IsKept(int64_t portion, double loss) {
    Kept& kept = kept_.at(portion);
    kept.loss = loss;
    kept.is_in_sum = true;
  }
  // All that this replica had, done or not, is to be done by others.
  void Lose(size_t replica) {
    std::set<int64_t> lost;
    for (auto at = kept_.begin(); at != kept_.end();) {
      const bool is_its = at->second.replica == replica;
      if (is_its) lost.insert(at->first);
      at = is_its ? kept_.erase(at) : std::next(at);
    }
    for (auto& [portion, at] : out_) {
      if (at.erase(replica) != 0 && at.empty() && kept_.count(portion) == 0) lost.insert(portion);
    }
    for (const int64_t portion : lost) {
      begun_.erase(std::remove(begun_.begin(), begun_.end(), portion), begun_.end());
      free_.push_back(portion);
    }
  }
  bool IsComplete() const {
    return static_cast<int64_t>(kept_.size()) == n_ &&
           std::all_of(kept_.begin(), kept_.end(), [](const auto& k) { return k.second.is_in_sum; });
  }
  // In the order of portions, so that it is the same whoever did them.
  double Loss() const {
    double loss = 0;
    for (const auto& [portion, kept] : kept_) loss += kept.loss;
    return loss;
  }
  std::set<size_t> Replicas() const {
    std::set<size_t> all;
    for (const auto& [portion, kept] : kept_) all.insert(kept.replica);
    return all;
  }

  bool is_over = false;
  int64_t copies = 0;  // handed out again because somebody was slow

 private:
  struct Kept {
    size_t replica;
    double loss = 0;
    bool is_in_sum = false;
  };
  const int64_t n_;
  std::deque<int64_t> free_;
  std::vector<int64_t> begun_;
  std::map<int64_t, std::set<size_t>> out_;  // the replicas that are at it
  std::map<int64_t, Kept> kept_;
};

}  // namespace internal

// How a minimization went, and who took part.
struct SandblasterResult : LbfgsResult {
  int64_t copies = 0;                 // portions that were handed out again because somebody was slow
  std::vector<size_t> lost_replicas;  // that failed; others did their portions
  Status first_loss;                  // why the first of them failed
};

// Replicas copy the parameters once for each evaluation, take portions as they become free, and add up gradients beside
// themselves, which go to the shards once all portions are done, in the order of replicas. When none is left to hand
// out, those that somebody is still at are given to idle replicas too, and the first result counts. A replica whose
// steps fail is left out.
class Sandblaster {
 public:
  // The loss of a portion (an int64 scalar) with these parameters, in the order of Model::trainable.
  using LossFn = std::function<Output(Scope scope, const std::vector<Output>& parameters, Output portion)>;

  // Adds variables to the model's graph, so that it comes before the model's Initializer. Errors as those of Lbfgs.
  Sandblaster(Model& model, int64_t num_portions, const LbfgsOptions& options = {})
      : model_(model), scope_(model.scope().SubScope("sandblaster")), num_portions_(num_portions) {
    if (num_portions < 1) {
      model.Note(Status(TF_INVALID_ARGUMENT, "num_portions must be positive, got " + std::to_string(num_portions)));
    }
    vectors_.emplace(model, scope_, [] { return std::vector<Output>(); }, options);
  }

  // Builds the model on `device`. The number of the replica.
  size_t AddReplica(const std::string& device, const LossFn& loss_fn) {
    Scope s = scope_.SubScope("replica_" + std::to_string(replicas_.size())).WithDevice(device);
    Replica r;
    r.portion = s.WithName("portion").Placeholder(DType::kInt64, Shape{});
    std::vector<Variable> copies, latest, sums;
    std::vector<Output> values;
    std::vector<Operation> fetched, computed, kept, pushed;
    for (const Variable& v : model_.trainable()) {
      Shape shape;
      s.graph().ShapeOf(v.read, &shape);
      const auto local = [&](const char* name) {
        const Operation op = s.WithName(name).Op(
            "VariableV2", {}, {{"dtype", v.read.dtype()}, {"shape", Attr::OfShape(shape)}, {"_local", true}});
        return op ? Variable{op, s.Op("Identity", {op})} : Variable{};
      };
      copies.push_back(local("copy"));
      latest.push_back(local("latest"));
      sums.push_back(local("sum"));
      values.push_back(copies.back().read);
      fetched.push_back(s.Op("Assign", {copies.back().ref, v.read}));
      fetched.push_back(s.Op("Assign", {sums.back().ref, s.Op("ZerosLike", {v.read})}));
    }
    const Output loss = loss_fn(s, values, r.portion);
    const std::vector<Output> gradients = internal::LbfgsGradients(s, loss, values);
    if (gradients.size() != values.size()) return replicas_.size();  // the graph has the error
    for (size_t i = 0; i < values.size(); ++i) {
      const Output gradient = gradients[i] ? gradients[i] : Output(s.Op("ZerosLike", {values[i]}));
      computed.push_back(s.Op("Assign", {latest[i].ref, gradient}));
      kept.push_back(s.Op("AssignAdd", {sums[i].ref, latest[i].read}));
      const Variable& there = vectors_->there()[i];
      Scope at = s.ColocateWith(Operation(model_.trainable()[i].ref.get().oper));
      const Output flat = at.Op("Reshape", {sums[i].read, at.Op("Shape", {there.read})});
      pushed.push_back(at.Op("AssignAdd", {there.ref, flat}, {{"use_locking", true}}));
    }
    r.loss = s.WithControl(computed).Op("Cast", {loss}, {{"DstT", DType::kDouble}});
    r.fetch = std::move(fetched);
    r.keep = std::move(kept);
    r.push = std::move(pushed);
    replicas_.push_back(std::move(r));
    return replicas_.size() - 1;
  }

  // From the variables' values on, which are then those of the best point. Each replica runs on a thread of its own in
  // its own of `sessions` (none: all in `session`). Returns when the last step of each replica is over.
  Returned<SandblasterResult> Minimize(const Session& session, std::vector<Session> sessions = {}) const {
    SandblasterResult result;
    if (sessions.empty()) sessions.assign(replicas_.size(), session);
    if (replicas_.empty() || sessions.size() != replicas_.size()) {
      return internal::Give(
          Status(TF_INVALID_ARGUMENT,
                 std::to_string(sessions.size()) + " sessions for " + std::to_string(replicas_.size()) + " replicas"),
          std::move(result));
    }
    Run run(*this, session, std::move(sessions));
    Status failure;
#if MILLRACE_EXCEPTIONS
    try {
      static_cast<LbfgsResult&>(result) = vectors_->Minimize(session, [&](double* loss) { return run.Evaluate(loss); });
    } catch (const Error& e) {
      failure = Status(e.code(), e.what());
    }
#else
    const Returned<LbfgsResult> got = vectors_->Minimize(session, [&](double* loss) { return run.Evaluate(loss); });
    failure = got.status();
    if (got.ok()) static_cast<LbfgsResult&>(result) = *got;
#endif
    run.Stop();
    result.copies = run.copies;
    result.lost_replicas.assign(run.lost.begin(), run.lost.end());
    result.first_loss = run.first_loss;
    return internal::Give(failure, std::move(result));
  }

 private:
  struct Replica {
    Output portion, loss;  // `loss` computes the gradient of a portion, aside
    std::vector<Operation> fetch, keep, push;
  };

  // One minimisation: the replicas' threads.
  class Run {
   public:
    Run(const Sandblaster& of, const Session& session, std::vector<Session> sessions)
        : of_(of), session_(session), sessions_(std::move(sessions)) {
      for (size_t i = 0; i < sessions_.size(); ++i) {
#ifdef __cpp_exceptions
        try {
          threads_.emplace_back([this, i] { Work(i); });
        } catch (const std::exception& e) {
          Lose(i, Status(TF_RESOURCE_EXHAUSTED, e.what()));
        }
#else
        threads_.emplace_back([this, i] { Work(i); });
#endif
      }
    }
    ~Run() { Stop(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void Stop() {
      {
        const std::lock_guard<std::mutex> lock(mu_);
        is_stopped_ = true;
        if (portions_) portions_->is_over = true;
      }
      news_.notify_all();
      for (std::thread& t : threads_) {
        if (t.joinable()) t.join();
      }
    }

    // The loss at the parameters' values; their gradient is in the shards.
    Status Evaluate(double* loss) {
      for (;;) {
        std::vector<Tensor> none;
        Status s = session_.TryRun({}, {}, of_.vectors_->stored(), &none);  // zeros
        if (!s.ok()) return s;
        std::set<size_t> replicas;
        {
          std::unique_lock<std::mutex> lock(mu_);
          portions_ = std::make_shared<internal::Portions>(of_.num_portions_);
          ++number_;
          news_.notify_all();
          news_.wait(lock, [&] { return portions_->IsComplete() || lost.size() == sessions_.size(); });
          portions_->is_over = true;
          copies += portions_->copies;
          if (!portions_->IsComplete()) return first_loss;
          *loss = portions_->Loss();
          replicas = portions_->Replicas();
        }
        bool is_whole = true;
        for (const size_t i : replicas) {
          s = sessions_[i].TryRun({}, {}, of_.replicas_[i].push, &none);
          if (s.ok()) continue;
          Lose(i, s);  // some shards may have it and others not: all again
          is_whole = false;
          break;
        }
        if (is_whole) return Status();
      }
    }

    int64_t copies = 0;     // after Stop
    std::set<size_t> lost;  // under mu_ until then
    Status first_loss;

   private:
    void Lose(size_t replica, const Status& why) {
      const std::lock_guard<std::mutex> lock(mu_);
      if (first_loss.ok()) first_loss = why;
      lost.insert(replica);
      if (portions_) portions_->Lose(replica);
      news_.notify_all();
    }

    void Work(size_t i) {
#ifdef __cpp_exceptions  // there is nobody to catch what leaves a thread
      Status s;
      try {
        s = Obey(i);
#if MILLRACE_EXCEPTIONS
      } catch (const Error& e) {
        s = Status(e.code(), e.what());
#endif
      } catch (const std::exception& e) {
        s = Status(TF_RESOURCE_EXHAUSTED, e.what());
      }
#else
      const Status s = Obey(i);
#endif
      if (!s.ok()) Lose(i, s);
    }

    Status Obey(size_t i) {
      const Replica& replica = of_.replicas_[i];
      const Session& session = sessions_[i];
      std::vector<Tensor> got;
      int64_t done = 0;
      std::unique_lock<std::mutex> lock(mu_);
      for (;;) {
        news_.wait(lock, [&] { return is_stopped_ || number_ > done || lost.count(i) != 0; });
        if (is_stopped_ || lost.count(i) != 0) return Status();
        done = number_;
        const std::shared_ptr<internal::Portions> portions = portions_;
        // Without the lock.
        const auto run = [&](const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                             const std::vector<Operation>& targets) {
          lock.unlock();
          const Status s = session.TryRun(feeds, fetches, targets, &got);
          lock.lock();
          return s;
        };
        if (const Status s = run({}, {}, replica.fetch); !s.ok()) return Unlocked(lock, s);
        while (!portions->is_over) {
          const int64_t portion = portions->Take(i);
          if (portion < 0) {
            news_.wait_for(lock, std::chrono::milliseconds(20));
            continue;
          }
          if (const Status s = run({{replica.portion, Tensor(portion)}}, {replica.loss}, {}); !s.ok()) {
            return Unlocked(lock, s);
          }
          if (!portions->Wins(i, portion)) continue;
          if (got[0].num_elements() != 1) {
            return Unlocked(lock, Status(TF_INVALID_ARGUMENT, "the loss of a portion is no scalar"));
          }
          const double loss = got[0].data<double>()[0];
          if (const Status s = run({}, {}, replica.keep); !s.ok()) return Unlocked(lock, s);
          portions->IsKept(portion, loss);
          news_.notify_all();
        }
      }
    }
    static Status Unlocked(std::unique_lock<std::mutex>& lock, Status s) {
      lock.unlock();
      return s;
    }

    const Sandblaster& of_;
    const Session& session_;
    const std::vector<Session> sessions_;
    std::mutex mu_;
    std::condition_variable news_;
    std::shared_ptr<internal::Portions> portions_;  // of the evaluation under way
    int64_t number_ = 0;                            // of the evaluation
    bool is_stopped_ = false;
    std::vector<std::thread> threads_;
  };

  Model& model_;
  Scope scope_;
  const int64_t num_portions_;
  std::optional<internal::LbfgsVectors> vectors_;
  std::vector<Replica> replicas_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
