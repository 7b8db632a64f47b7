// SPDX-License-Identifier: Apache-2.0
// What clients and masters say to each other. Messages are values, as those of worker_messages.h. Tensors and nodes are
// named as in GraphDefs: "node:0" (or "node"), "node".
//
// A session is known by a text that its master has drawn at random. It stays until somebody closes it, or resets the
// master, or the client that made it in another process has not been heard for the master's lease.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernel/random_stream.h"
#include "service/device_info.h"
#include "tensor/tensor.h"
#include "wire/config.h"
#include "wire/graph.h"

namespace millrace {

struct CreateSessionRequest {
  wire::GraphDef graph;
  wire::ConfigProto config;
  bool pings = false;  // the client will, as often as the response says; who does not has no lease
};
struct CreateSessionResponse {
  std::string session;
  int64_t graph_version = 0;
  int64_t ping_millis = 0;  // 0: the session stays without pings
};

// Asks whether the master is there; with a session: keeps it, as every other call for it does.
struct PingRequest {
  std::string session;  // may be empty
};
struct PingResponse {};

// Adds nodes that the session does not have, which may read those that it has. Aborted: `graph_version` is not that of
// the session, since another client has extended it.
struct ExtendSessionRequest {
  std::string session;
  wire::GraphDef graph;
  int64_t graph_version = 0;
};
struct ExtendSessionResponse {
  int64_t graph_version = 0;
};

struct StepSignature {
  std::vector<std::string> feeds, fetches, targets;
  bool operator==(const StepSignature&) const = default;
};

struct RunSessionStepRequest {
  std::string session;
  StepSignature signature;
  std::vector<Tensor> feed_values;  // as the signature's feeds
  std::string partial_run;          // not empty: goes on with it; the signature has no targets then
  bool has_options = false;
  wire::RunOptions options;
  bool wants_metadata = false;
  // Numbers of calls within the client's session, from 1: this one's, and the first that the client still waits for. A
  // call that comes again is refused with Aborted. 0: it has no number.
  int64_t call = 0;
  int64_t oldest_call = 0;
};
struct RunSessionStepResponse {
  Status status;                // how the step ended
  std::vector<Tensor> fetches;  // when it ended well
  wire::RunMetadata metadata;   // also when it failed, where it was wanted
};

struct SetUpPartialRunRequest {
  std::string session;
  StepSignature signature;  // all of its feeds and fetches
};
struct SetUpPartialRunResponse {
  std::string partial_run;
};
struct ReleasePartialRunRequest {
  std::string session;
  std::string partial_run;
};
struct ReleasePartialRunResponse {};

// A signature with a number, so that a step is a shorter message. It goes with the session.
struct MakeCallableRequest {
  std::string session;
  StepSignature signature;
};
struct MakeCallableResponse {
  int64_t callable = 0;
};
struct RunCallableRequest {
  std::string session;
  int64_t callable = 0;
  std::vector<Tensor> feed_values;
};
struct RunCallableResponse {
  std::vector<Tensor> fetches;
};
struct ReleaseCallableRequest {
  std::string session;
  int64_t callable = 0;
};
struct ReleaseCallableResponse {};

// Stops its steps. What is in containers stays.
struct CloseSessionRequest {
  std::string session;
};
struct CloseSessionResponse {};

// Of a session, or all that the master knows when there is no session.
struct ListDevicesRequest {
  std::string session;
};
struct ListDevicesResponse {
  std::vector<DeviceInfo> devices;
};

// Closes all sessions of the master, then drops what is in these containers (all when empty) on the tasks that the
// filters leave.
struct ResetMasterRequest {
  std::vector<std::string> containers;
  std::vector<std::string> device_filters;
};
struct ResetMasterResponse {};

struct ExplainStepRequest {
  std::string session;
  StepSignature signature;
};
struct ExplainStepResponse {
  std::string text, json;
};

struct GetSessionRandomRequest {
  std::string session;
};
struct GetSessionRandomResponse {
  RandomPositions positions;
};
struct SetSessionRandomRequest {
  std::string session;
  RandomPositions positions;
};
struct SetSessionRandomResponse {};

}  // namespace millrace
