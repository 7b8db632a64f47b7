// SPDX-License-Identifier: Apache-2.0
// What a server tells of itself, to people and programs that watch it: `millrace top`, /metrics.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/cluster_spec.h"
#include "cluster/master_interface.h"
#include "service/worker_interface.h"

namespace millrace {

// The method that answers with ServerMeter::Json.
inline constexpr char kGetStatusMethod[] = "Server.GetStatus";

// Counts what a server does. Thread-safe.
class ServerMeter {
 public:
  ServerMeter(Env* env, const ClusterSpec& cluster, std::string task);

  enum class Kind : uint8_t { kOther, kStep, kPartOfStep };
  // A call under way, which ends with End. -1: it is a step, and `max_steps` are under way.
  int64_t Begin(absl::string_view method, absl::string_view peer, Kind kind, int64_t max_steps = INT64_MAX);
  void End(int64_t call, bool ok);
  void CountBytes(int64_t in, int64_t out);

  // One JSON object: task, tasks (of the cluster, with addresses), incarnation, up_seconds, sessions (of masters on the
  // worker), steps and failed_steps (of the clients of its master), step_seconds (of all steps together), parts (of
  // steps of all masters that the worker was asked for), bytes_in, bytes_out, refused, seconds_since_step (null: no
  // step has ended well), and waiting: the calls under way that are oldest, with method, peer and seconds.
  std::string Json(const GetStatusResponse& worker, int64_t refused) const;

 private:
  struct Call {
    std::string method, peer;
    Kind kind = Kind::kOther;
    int64_t start = 0;
  };
  Env* const env_;
  const ClusterSpec cluster_;
  const std::string task_;
  const int64_t start_;
  mutable absl::Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<int64_t, Call> calls_ ABSL_GUARDED_BY(mu_);  // under way, oldest first
  int64_t steps_ ABSL_GUARDED_BY(mu_) = 0, failed_steps_ ABSL_GUARDED_BY(mu_) = 0, parts_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_nanos_ ABSL_GUARDED_BY(mu_) = 0, last_step_ ABSL_GUARDED_BY(mu_) = -1;
  int64_t steps_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_in_ ABSL_GUARDED_BY(mu_) = 0, bytes_out_ ABSL_GUARDED_BY(mu_) = 0;
};

// A master whose steps are counted, and limited: ResourceExhausted when `max_steps` are under way.
class MeteredMaster final : public MasterInterface {
 public:
  // Both outlive it.
  MeteredMaster(MasterInterface* master, ServerMeter* meter, int64_t max_steps)
      : master_(master), meter_(meter), max_steps_(max_steps) {}
#define MR_DECLARE(Method, Request, Response) \
  StatusOr<Response> Method(const MasterCall& call, Request request) override;
  MR_MASTER_METHODS(MR_DECLARE)
#undef MR_DECLARE

 private:
  MasterInterface* const master_;
  ServerMeter* const meter_;
  const int64_t max_steps_;
};

}  // namespace millrace
