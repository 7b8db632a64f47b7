// SPDX-License-Identifier: Apache-2.0
// What masters and workers say to each other. Messages are values: none refers to anything of the side that sent it, so
// the same structs travel by call within a process, and as bytes between two.
//
// A session is known by a number that its master has drawn at random, and a worker by the incarnation that it drew when
// it began: a message for an earlier incarnation, or from an unknown session, is refused with Aborted. A master that
// has lost one of its workers begins a new epoch of its session on all of them: a message of an earlier epoch is
// refused likewise, but for what ends or serves a step that is open. Steps are numbered by their master, within its
// session.
#pragma once

#include <string>
#include <vector>

#include "kernel/edge_key.h"
#include "kernel/random_stream.h"
#include "passes/pipeline.h"
#include "runtime/plan_cut.h"
#include "runtime/step_record.h"
#include "service/device_info.h"
#include "service/session_settings.h"
#include "service/step_horizon.h"
#include "wire/config.h"

namespace millrace {

// A session on a worker.
struct SessionRef {
  uint64_t session = 0;
  uint64_t incarnation = 0;  // of the worker
  int64_t epoch = 0;
  bool operator==(const SessionRef&) const = default;
};
struct StepRef {
  SessionRef session;
  int64_t step = 0;
};

// Again for a session that is there: begins a new epoch of it, or changes nothing.
struct CreateWorkerSessionRequest {
  uint64_t session = 0;
  int64_t epoch = 0;
  // The session ends when no heartbeat of its master has come for so long; 0: it does not.
  int64_t lease_millis = 0;
  // Variables and other resources belong to the session, and end with it.
  bool isolates_state = false;
  // The tasks as the session calls them, and what it calls this worker: "/job:x/replica:0/task:1"; without jobs those
  // of the worker's own cluster.
  wire::ClusterDef cluster;
  std::string task;
  SessionSettings settings;
};
struct CreateWorkerSessionResponse {
  uint64_t incarnation = 0;
  std::vector<DeviceInfo> devices;
};
// Stops its steps, those that run inline too; answered when they have ended. The state in containers stays.
struct DeleteWorkerSessionRequest {
  SessionRef session;
};
struct DeleteWorkerSessionResponse {};

// A partition, with what it receives from other workers, and sends to them unasked.
struct PartitionToRegister {
  Partition partition;
  // The other end of an edge.
  struct Peer {
    int64_t edge = 0;
    std::string task;
    uint64_t incarnation = 0;
    bool is_pushed = false;  // outside of loops its value is sent unasked, by SendTensor
  };
  std::vector<Peer> peers;
};
// All or none.
struct RegisterPartitionsRequest {
  SessionRef session;
  std::vector<PartitionToRegister> partitions;
};
struct RegisterPartitionsResponse {
  std::vector<int64_t> handles;  // in the order of the partitions
  std::vector<CutReport> cuts;   // of their plans
};
struct DeregisterPartitionsRequest {
  SessionRef session;
  std::vector<int64_t> handles;
};
struct DeregisterPartitionsResponse {};

// All that a worker must know of a step: one message a step. It carries feeds, the answer fetches.
struct RunStepRequest {
  StepRef step;
  struct Part {
    int64_t handle = 0;
    std::vector<Tensor> args;  // in the order of the partition's _Arg indices
  };
  std::vector<Part> parts;
  bool is_alone = false;     // no other worker takes part: the step is over with the answer, unless it was aborted
  int max_threads = 0;       // within a kernel; 0: the pool's width
  int inter_op_threads = 0;  // that run kernels at once; 0: the pool's width
  bool trace = false;
  bool deterministic = false;  // one thread, ready nodes in a seeded order
  uint64_t order_seed = 0;
  StepHorizon over;  // as in CleanUpStepsRequest

  bool single_thread() const { return deterministic || inter_op_threads == 1; }
};
struct RunStepResponse {
  Status status;                             // how the step ended here
  std::vector<std::vector<Tensor>> retvals;  // by part; of those that have ended well
  std::vector<StepRecord> trace;
  bool is_consequence = false;  // a failure that began elsewhere: with an abort, or what another worker did not send
};
// Stops it, also when its RunStep is still on the way.
struct AbortStepRequest {
  StepRef step;
  Status why;
};
struct AbortStepResponse {};
// Drops what the session's steps that are over hold.
struct CleanUpStepsRequest {
  SessionRef session;
  StepHorizon horizon;
};
struct CleanUpStepsResponse {};

// What a client of a partial run gives and wants. Answered when all fetches are there.
struct ExchangeTensorsRequest {
  StepRef step;
  struct Feed {
    int64_t edge = 0;
    Tensor value;
  };
  std::vector<Feed> feeds;
  std::vector<int64_t> fetches;  // edges
};
struct ReceivedTensor {
  Tensor value;
  bool is_dead = false;
};
struct ExchangeTensorsResponse {
  std::vector<ReceivedTensor> fetches;
};

// From one worker to another: the value that it has sent, or will send, in this step.
struct RecvTensorRequest {
  StepRef step;
  EdgeKey key;
};
struct RecvTensorResponse {
  ReceivedTensor tensor;
};
// From one worker to another that will want the value, unasked. It may be lost: who does not get it asks for it.
struct SendTensorRequest {
  StepRef step;
  EdgeKey key;
  ReceivedTensor tensor;
};
struct SendTensorResponse {};

struct GetStatusRequest {};
struct GetStatusResponse {
  std::string task;
  uint64_t incarnation = 0;
  std::vector<DeviceInfo> devices;
  int64_t num_sessions = 0;
  int64_t clock_nanos = 0;  // when it answered, as its RealNanos says
};
// A master is alive, and has these sessions: the worker does not end them for want of news.
struct HeartbeatRequest {
  std::vector<SessionRef> sessions;
};
struct HeartbeatResponse {
  uint64_t incarnation = 0;
  std::vector<uint64_t> lost;  // of these sessions, those that the worker does not have, or not any more
};
// Ends the sessions on the worker that have something in these containers (all when empty), and drops what is there
// once their steps have ended. Their masters are told by Aborted, and make them again.
struct ResetRequest {
  std::vector<std::string> containers;
  bool closes_all = false;  // all sessions, for good. For the worker's owner: it does not travel.
};
struct ResetResponse {};

// Where the session's random ops are in their streams, by names of nodes.
struct GetRandomPositionsRequest {
  SessionRef session;
};
struct GetRandomPositionsResponse {
  RandomPositions positions;
};
struct SetRandomPositionsRequest {
  SessionRef session;
  RandomPositions positions;
};
struct SetRandomPositionsResponse {};

}  // namespace millrace
