// SPDX-License-Identifier: Apache-2.0
#include "cluster/server_status.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

constexpr size_t kMostWaiting = 16;  // calls that are told one by one

std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", std::string(1, c));
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Seconds(int64_t nanos) { return absl::StrFormat("%.6f", static_cast<double>(nanos) * 1e-9); }

template <typename Response>
bool EndedWell(const StatusOr<Response>& response) {
  return response.ok();
}
bool EndedWell(const StatusOr<RunSessionStepResponse>& response) { return response.ok() && response->status.ok(); }

ServerMeter::Kind KindOf(absl::string_view method) {
  return method == "RunStep" || method == "RunCallable" ? ServerMeter::Kind::kStep : ServerMeter::Kind::kOther;
}

Status TooManySteps(int64_t most) {
  return ResourceExhausted("the server runs ", most, " steps already, its limit (MILLRACE_MAX_STEPS)");
}

}  // namespace

ServerMeter::ServerMeter(Env* env, const ClusterSpec& cluster, std::string task)
    : env_(env), cluster_(cluster), task_(std::move(task)), start_(env->MonotonicNanos()) {}

int64_t ServerMeter::Begin(absl::string_view method, absl::string_view peer, Kind kind, int64_t max_steps) {
  const int64_t now = env_->MonotonicNanos();
  absl::MutexLock lock(&mu_);
  if (kind == Kind::kStep && steps_in_flight_ >= max_steps) return -1;
  steps_in_flight_ += kind == Kind::kStep;
  calls_.emplace_hint(calls_.end(), next_, Call{std::string(method), std::string(peer), kind, now});
  return next_++;
}

void ServerMeter::End(int64_t call, bool ok) {
  const int64_t now = env_->MonotonicNanos();
  absl::MutexLock lock(&mu_);
  const auto at = calls_.find(call);
  if (at == calls_.end()) return;
  if (at->second.kind == Kind::kStep) {
    --steps_in_flight_;
    ++(ok ? steps_ : failed_steps_);
    step_nanos_ += now - at->second.start;
  } else if (at->second.kind == Kind::kPartOfStep) {
    ++parts_;
  }
  if (ok && at->second.kind != Kind::kOther) last_step_ = now;
  calls_.erase(at);
}

void ServerMeter::CountBytes(int64_t in, int64_t out) {
  absl::MutexLock lock(&mu_);
  bytes_in_ += in;
  bytes_out_ += out;
}

std::string ServerMeter::Json(const GetStatusResponse& worker, int64_t refused) const {
  const int64_t now = env_->MonotonicNanos();
  std::vector<std::string> tasks, waiting;
  for (const ClusterTask& t : cluster_.tasks()) {
    tasks.push_back(
        absl::StrCat("{\"job\": ", Quoted(t.job), ", \"task\": ", t.index, ", \"address\": ", Quoted(t.address), "}"));
  }
  absl::MutexLock lock(&mu_);
  for (const auto& [number, c] : calls_) {
    if (waiting.size() == kMostWaiting) break;
    waiting.push_back(absl::StrCat("{\"method\": ", Quoted(c.method), ", \"peer\": ", Quoted(c.peer),
                                   ", \"seconds\": ", Seconds(now - c.start), "}"));
  }
  return absl::StrCat(
      "{\"task\": ", Quoted(task_), ", \"incarnation\": \"", absl::Hex(worker.incarnation, absl::kZeroPad16),
      "\", \"up_seconds\": ", Seconds(now - start_), ", \"sessions\": ", worker.num_sessions, ", \"steps\": ", steps_,
      ", \"failed_steps\": ", failed_steps_, ", \"step_seconds\": ", Seconds(step_nanos_),
      ", \"steps_in_flight\": ", steps_in_flight_, ", \"parts\": ", parts_, ", \"bytes_in\": ", bytes_in_,
      ", \"bytes_out\": ", bytes_out_, ", \"refused\": ", refused,
      ", \"seconds_since_step\": ", last_step_ < 0 ? "null" : Seconds(now - last_step_), ", \"tasks\": [",
      absl::StrJoin(tasks, ", "), "], \"calls\": ", calls_.size(), ", \"waiting\": [", absl::StrJoin(waiting, ", "),
      "]}");
}

#define MR_METER(Method, Request, Response)                                                               \
  StatusOr<Response> MeteredMaster::Method(const MasterCall& call, Request request) {                     \
    const absl::string_view peer = call.peer != nullptr ? *call.peer : absl::string_view("this process"); \
    const int64_t number = meter_->Begin("Master." #Method, peer, KindOf(#Method), max_steps_);           \
    if (number < 0) return TooManySteps(max_steps_);                                                      \
    StatusOr<Response> response = master_->Method(call, std::move(request));                              \
    meter_->End(number, EndedWell(response));                                                             \
    return response;                                                                                      \
  }
MR_MASTER_METHODS(MR_METER)
#undef MR_METER

}  // namespace millrace
