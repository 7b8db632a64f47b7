// SPDX-License-Identifier: Apache-2.0
// A training loop that looks after itself: it begins where the last checkpoint is, saves, writes summaries, stops,
// tells how far it is, and goes on from the last checkpoint when a step is lost with a machine.
//
//   millrace::MonitoredSession training(graph, {.checkpoint_dir = "run", .init = init, .global_step = step},
//                                       {millrace::CheckpointSaverHook(saver, "run/model", 1000),
//                                        millrace::StopAtStepHook(20000), millrace::NanTensorHook(loss),
//                                        millrace::ProgressHook(20000)});
//   while (!training.ShouldStop()) training.Run(NextBatch(), {loss}, {train});
//   training.Close();
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "millrace/event_writer.h"
#include "millrace/saver.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// What a hook sees of a step that has run.
struct RunContext {
  // Which ran it.
  const Session& session;
  int64_t step;                       // the global step behind it
  const std::vector<Tensor>& values;  // of what the hook fetches
  std::atomic<bool>& stop;            // set: no step follows
};

// What is done around the steps. Hooks are called in their order, on the thread that runs the steps; an error of one
// ends the training.
struct Hook {
  std::vector<Output> fetches = {};                                               // in each step, for `after_run`
  std::function<Status(const Session&, int64_t step)> after_create_session = {};  // also after a recovery
  // Behind each step that went well.
  std::function<Status(const RunContext&)> after_run = {};
  std::function<Status(const Session&, int64_t step)> end = {};  // of a training that did not fail
};

// No step follows that after which the global step is `last`.
inline Hook StopAtStepHook(int64_t last) {
  Hook h;
  h.after_create_session = [last](const Session&, int64_t step) {
    return step > last ? Status(TF_OUT_OF_RANGE, "the training stands at step " + std::to_string(step) +
                                                     ", it is to stop at " + std::to_string(last))
                       : Status();
  };
  h.after_run = [last](const RunContext& run) {
    if (run.step >= last) run.stop = true;
    return Status();
  };
  return h;
}

// Saves "<prefix>-<step>" every so many steps, before the first one where no checkpoint is, and at the end.
inline Hook CheckpointSaverHook(const Saver& saver, const std::string& prefix, int64_t every_steps) {
  struct State {
    Saver saver;
    int64_t saved = -1;
    Status Save(const Session& session, const std::string& prefix, int64_t step) {
      if (saved == step) return Status();
      saved = step;
      return saver.TrySave(session, prefix, step);
    }
  };
  const auto state = std::make_shared<State>(State{saver});
  Hook h;
  h.after_create_session = [=](const Session& session, int64_t step) {
    const std::string latest = LatestCheckpoint(internal::FolderOf(prefix));
    if (latest == prefix + "-" + std::to_string(step)) state->saved = step;
    return state->Save(session, prefix, step);
  };
  h.after_run = [=](const RunContext& run) {
    return run.step - state->saved >= every_steps ? state->Save(run.session, prefix, run.step) : Status();
  };
  h.end = [=](const Session& session, int64_t step) {
    const Status s = state->Save(session, prefix, step);
    const Status written = state->saver.TryWait();
    return s.ok() ? written : s;
  };
  return h;
}

// Writes the result of a summary op every so many steps.
inline Hook SummarySaverHook(const EventWriter& writer, Output summary, int64_t every_steps) {
  Hook h;
  h.fetches = {summary};
  const auto last = std::make_shared<int64_t>(-1);
  h.after_run = [writer, every_steps, last](const RunContext& run) {
    if (*last >= 0 && run.step - *last < every_steps) return Status();
    *last = run.step;
    return writer.TryAddSummary(run.values[0], run.step);
  };
  return h;
}

// TF_INVALID_ARGUMENT when a float scalar, such as the loss, is no finite number.
inline Hook NanTensorHook(Output loss) {
  Hook h;
  h.fetches = {loss};
  h.after_run = [name = loss.name()](const RunContext& run) {
    const float* value = run.values[0].data<float>();
    if (value && run.values[0].num_elements() == 1 && std::isfinite(*value)) return Status();
    return Status(TF_INVALID_ARGUMENT, name + " is " + (value ? std::to_string(*value) : std::string("no float")) +
                                           " after step " + std::to_string(run.step));
  };
  return h;
}

// Writes "global_step/sec", how many steps a second there were, every so many steps.
inline Hook StepCounterHook(const EventWriter& writer, int64_t every_steps = 100) {
  using Clock = std::chrono::steady_clock;
  struct State {
    int64_t step = 0;
    Clock::time_point at;
  };
  const auto state = std::make_shared<State>();
  Hook h;
  h.after_create_session = [state](const Session&, int64_t step) {
    *state = {step, Clock::now()};
    return Status();
  };
  h.after_run = [=](const RunContext& run) {
    const int64_t steps = run.step - state->step;
    if (steps < every_steps) return Status();
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - state->at).count();
    *state = {run.step, now};
    if (!(seconds > 0)) return Status();
    return writer.TryAddScalar("global_step/sec", static_cast<float>(static_cast<double>(steps) / seconds), run.step);
  };
  return h;
}

// Writes "loss = 0.25, accuracy = 0.9 (step 100)" to standard error every so many steps: the name and value of tensors
// of one float each.
inline Hook LoggingTensorHook(const std::vector<std::pair<std::string, Output>>& tensors, int64_t every_steps) {
  Hook h;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    h.fetches.push_back(tensor);
  }
  const auto last = std::make_shared<int64_t>(-1);
  h.after_run = [names, every_steps, last](const RunContext& run) {
    if (*last >= 0 && run.step - *last < every_steps) return Status();
    *last = run.step;
    std::string line;
    for (size_t i = 0; i < names.size(); ++i) {
      const float* value = run.values[i].data<float>();
      if (!value || run.values[i].num_elements() != 1) return Status(TF_INVALID_ARGUMENT, names[i] + " is no float");
      char text[32];
      std::snprintf(text, sizeof text, "%g", static_cast<double>(*value));
      line += (i > 0 ? ", " : "") + names[i] + " = " + text;
    }
    std::fprintf(stderr, "%s (step %lld)\n", line.c_str(), static_cast<long long>(run.step));
    return Status();
  };
  return h;
}

// "step 30 of 100, 12.5 steps/s, 0:06 left".
inline std::string ProgressLine(int64_t first, int64_t step, int64_t total, double seconds) {
  std::string line = "step " + std::to_string(step) + " of " + std::to_string(total);
  if (step <= first || !(seconds > 0)) return line;
  const double rate = static_cast<double>(step - first) / seconds;
  const auto left = static_cast<long long>(static_cast<double>(std::max<int64_t>(total - step, 0)) / rate + 0.5);
  char text[96];
  if (left < 3600) {
    std::snprintf(text, sizeof text, ", %.1f steps/s, %lld:%02lld left", rate, left / 60, left % 60);
  } else {
    std::snprintf(
        text, sizeof text, ", %.1f steps/s, %lld:%02lld:%02lld left", rate, left / 3600, left / 60 % 60, left % 60);
  }
  return line + text;
}
// Shows on standard error, where that is a terminal, how far the training is, twice a second at most.
inline Hook ProgressHook(int64_t total, bool even_if_no_terminal = false) {
  using Clock = std::chrono::steady_clock;
  struct State {
    int64_t first = 0;
    Clock::time_point began, shown;
  };
  const auto state = std::make_shared<State>();
  const bool shows = even_if_no_terminal || isatty(STDERR_FILENO) != 0;
  Hook h;
  h.after_create_session = [state](const Session&, int64_t step) {
    state->first = step;
    state->began = Clock::now();
    return Status();
  };
  h.after_run = [=](const RunContext& run) {
    const Clock::time_point now = Clock::now();
    if (!shows || now - state->shown < std::chrono::milliseconds(500)) return Status();
    state->shown = now;
    const double seconds = std::chrono::duration<double>(now - state->began).count();
    std::fprintf(stderr, "\r\033[K%s", ProgressLine(state->first, run.step, total, seconds).c_str());
    std::fflush(stderr);
    return Status();
  };
  h.end = [=](const Session&, int64_t) {
    if (shows) std::fprintf(stderr, "\r\033[K");
    return Status();
  };
  return h;
}

// How a training begins and recovers.
struct MonitoredSessionOptions {
  std::string checkpoint_dir = {};  // where the newest checkpoint is looked for; "": nowhere
  Operation init = {};              // gives the variables their first values where there is none
  // Which counts the steps; it must be given.
  Variable global_step = {};
  std::optional<Saver> saver = {};  // restores; where it is not given, one of all variables
  // Of each session that it makes.
  SessionOptions session = {};
  // Attempts to go on after steps that are lost (TF_ABORTED, TF_UNAVAILABLE), with no good step between them, and the
  // pauses before them, which double.
  int max_recoveries = 20;
  // The pauses.
  std::chrono::milliseconds first_pause{100}, longest_pause{30000};
  std::chrono::milliseconds patience = std::chrono::minutes(30);  // with attempts, each of which may wait for a task
};

// For one thread; RequestStop may be called on any, and in signal handlers.
class MonitoredSession {
 public:
  // Restores the newest checkpoint, or initializes. Without exceptions, status() tells what went wrong.
  MonitoredSession(const Graph& graph, MonitoredSessionOptions options, std::vector<Hook> hooks = {})
      : graph_(graph), options_(std::move(options)), hooks_(std::move(hooks)) {
    status_ = options_.global_step.read ? Status() : Status(TF_INVALID_ARGUMENT, "a global step is wanted");
    if (status_.ok() && !options_.checkpoint_dir.empty() && !options_.saver) MakeSaver();
    if (status_.ok()) status_ = Begin();
    if (!status_.ok()) status_ = Recover(status_);
#if MILLRACE_EXCEPTIONS
    if (!status_.ok()) throw Error(status_);
#endif
  }
  MonitoredSession(const MonitoredSession&) = delete;
  MonitoredSession& operator=(const MonitoredSession&) = delete;

  // Whether no step is to follow: a hook or RequestStop has said so, the data are at their end, or the training has
  // failed.
  bool ShouldStop() const { return stop_ || !status_.ok() || !session_; }
  // Lets ShouldStop say so.
  void RequestStop() { stop_ = true; }
  // One step with its hooks. A step that is lost begins anew from the last checkpoint that is whole, after a pause.
  // TF_OUT_OF_RANGE, the end of the data, stops the training, and is no error: there are no values then.
  Returned<std::vector<Tensor>> Run(const std::vector<Feed>& feeds, const std::vector<Output>& fetches,
                                    const std::vector<Operation>& targets = {}) {
    std::vector<Tensor> values;
    Status s = status_.ok() && !session_ ? Status(TF_FAILED_PRECONDITION, "the training has ended") : status_;
    while (s.ok()) {
      s = Step(feeds, fetches, targets, &values);
      if (s.ok()) {
        failures_.clear();
        break;
      }
      values.clear();
      if (s.code() == TF_OUT_OF_RANGE) {
        stop_ = true;
        s = Status();
        break;
      }
      status_ = s = Recover(s);
    }
    return internal::Give(s, std::move(values));
  }
  // Ends the hooks, in their order: the last checkpoint is written here. A training that failed has no end.
  Done Close() {
    Status s = status_;
    if (session_ && s.ok()) {
      for (const Hook& h : hooks_) {
        const Status ended = h.end ? h.end(session_, step_) : Status();
        if (s.ok()) s = ended;
      }
    }
    session_ = Session();
    return internal::Finish(s);
  }
  int64_t step() const { return step_; }          // the global step
  int recoveries() const { return recoveries_; }  // how many steps were lost
  // The session of now; another one after a recovery.
  const Session& session() const { return session_; }
  const Status& status() const { return status_; }  // the error that ended the training

 private:
  using Clock = std::chrono::steady_clock;
  void MakeSaver() {
#if MILLRACE_EXCEPTIONS
    options_.saver.emplace(graph_);
#else
    options_.saver.emplace(graph_);
    status_ = options_.saver->status();
#endif
  }
  Status Begin() {
#if MILLRACE_EXCEPTIONS
    try {
      session_ = Session(graph_, options_.session);
    } catch (const Error& e) {
      return Status(e.code(), e.what());
    }
#else
    session_ = Session(graph_, options_.session);
    if (!session_) return session_.status();
#endif
    std::vector<Tensor> none;
    Status s;
    std::string restored;
    if (!options_.checkpoint_dir.empty()) {
      s = options_.saver->TryRestoreNewest(session_, options_.checkpoint_dir, &restored);
    }
    if (s.ok() && restored.empty() && options_.init) s = session_.TryRun({}, {}, {options_.init}, &none);
    if (s.ok()) s = ReadStep();
    for (const Hook& h : hooks_) {
      if (s.ok() && h.after_create_session) s = h.after_create_session(session_, step_);
    }
    return s;
  }
  // Makes a session after an error that the end of a machine explains. Other errors come back as they are, and the last
  // one with those before it when no attempt is left.
  Status Recover(Status s) {
    while (s.code() == TF_ABORTED || s.code() == TF_UNAVAILABLE) {
      if (failures_.empty()) failing_since_ = Clock::now();
      failures_.push_back(s.message().substr(0, s.message().find('\n')));
      const bool are_too_many = failures_.size() > static_cast<size_t>(std::max(options_.max_recoveries, 0));
      if (are_too_many || Clock::now() - failing_since_ >= options_.patience) return WithHistory(s);
      std::chrono::milliseconds pause = options_.first_pause;
      for (size_t i = 1; i < failures_.size() && pause < options_.longest_pause; ++i) pause *= 2;
      pause = std::min(pause, options_.longest_pause);
      const double jitter = 0.5 + 0.5 * std::generate_canonical<double, 24>(random_);  // not all workers at once
      const Clock::time_point until = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause * jitter);
      while (Clock::now() < until) {
        if (stop_) return s;
        std::this_thread::sleep_for(std::min<Clock::duration>(until - Clock::now(), std::chrono::milliseconds(50)));
      }
      ++recoveries_;
      s = Begin();
    }
    return s;
  }
  Status WithHistory(const Status& s) const {
    constexpr size_t kMostTold = 5;
    const size_t left_out = failures_.size() > kMostTold ? failures_.size() - kMostTold : 0;
    std::string message = s.message() + "\nNo step has gone well since " + std::to_string(failures_.size()) +
                          (failures_.size() == 1 ? " failure:" : " failures:");
    if (left_out > 0) message += "\n  " + std::to_string(left_out) + " more";
    for (size_t i = left_out; i < failures_.size(); ++i) message += "\n  " + failures_[i];
    return Status(s.code(), message);
  }
  Status ReadStep() {
    std::vector<Tensor> value;
    const Status s = session_.TryRun({}, {options_.global_step.read}, {}, &value);
    if (!s.ok()) return s;
    if (const int64_t* wide = value[0].data<int64_t>())
      step_ = *wide;
    else if (const int32_t* narrow = value[0].data<int32_t>())
      step_ = *narrow;
    else
      return Status(TF_INVALID_ARGUMENT, options_.global_step.name() + " is no integer");
    return Status();
  }
  Status Step(const std::vector<Feed>& feeds, const std::vector<Output>& fetches, const std::vector<Operation>& targets,
              std::vector<Tensor>* values) {
    std::vector<Output> all = fetches;
    for (const Hook& h : hooks_) all.insert(all.end(), h.fetches.begin(), h.fetches.end());
    std::vector<Tensor> got;
    Status s = session_.TryRun(feeds, all, targets, &got);
    if (s.ok()) s = ReadStep();
    if (!s.ok()) return s;
    auto at = got.begin() + static_cast<std::ptrdiff_t>(fetches.size());
    values->assign(got.begin(), at);
    for (const Hook& h : hooks_) {
      const std::vector<Tensor> own(at, at + static_cast<std::ptrdiff_t>(h.fetches.size()));
      at += static_cast<std::ptrdiff_t>(h.fetches.size());
      if (h.after_run) s = h.after_run({session_, step_, own, stop_});
      if (!s.ok()) return s;
    }
    return s;
  }

  Graph graph_;
  MonitoredSessionOptions options_;
  std::vector<Hook> hooks_;
  Session session_;
  Status status_;
  std::atomic<bool> stop_{false};
  int64_t step_ = 0;
  int recoveries_ = 0;
  std::vector<std::string> failures_;  // since the last good step
  Clock::time_point failing_since_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
