// SPDX-License-Identifier: Apache-2.0
// The fields of master_messages.h (see wire_codec.h). Their numbers are never used again for something else.
#pragma once

#include "cluster/common_codec.h"
#include "cluster/master_messages.h"

namespace millrace {

template <typename V>
void VisitFields(V& v, CreateSessionRequest& m) {
  v(1, m.graph);
  v(2, m.config);
  v(3, m.pings);
}
template <typename V>
void VisitFields(V& v, CreateSessionResponse& m) {
  v(1, m.session);
  v(2, m.graph_version);
  v(3, m.ping_millis);
}
template <typename V>
void VisitFields(V& v, PingRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V&, PingResponse&) {}
template <typename V>
void VisitFields(V& v, ExtendSessionRequest& m) {
  v(1, m.session);
  v(2, m.graph);
  v(3, m.graph_version);
}
template <typename V>
void VisitFields(V& v, ExtendSessionResponse& m) {
  v(1, m.graph_version);
}

template <typename V>
void VisitFields(V& v, StepSignature& m) {
  v(1, m.feeds);
  v(2, m.fetches);
  v(3, m.targets);
}
template <typename V>
void VisitFields(V& v, RunSessionStepRequest& m) {
  v(1, m.session);
  v(2, m.signature);
  v(3, m.feed_values);
  v(4, m.partial_run);
  v(5, m.has_options);
  v(6, m.options);
  v(7, m.wants_metadata);
  v(8, m.call);
  v(9, m.oldest_call);
}
template <typename V>
void VisitFields(V& v, RunSessionStepResponse& m) {
  v(1, m.status);
  v(2, m.fetches);
  v(3, m.metadata);
}
template <typename V>
void VisitFields(V& v, SetUpPartialRunRequest& m) {
  v(1, m.session);
  v(2, m.signature);
}
template <typename V>
void VisitFields(V& v, SetUpPartialRunResponse& m) {
  v(1, m.partial_run);
}
template <typename V>
void VisitFields(V& v, ReleasePartialRunRequest& m) {
  v(1, m.session);
  v(2, m.partial_run);
}
template <typename V>
void VisitFields(V&, ReleasePartialRunResponse&) {}

template <typename V>
void VisitFields(V& v, MakeCallableRequest& m) {
  v(1, m.session);
  v(2, m.signature);
}
template <typename V>
void VisitFields(V& v, MakeCallableResponse& m) {
  v(1, m.callable);
}
template <typename V>
void VisitFields(V& v, RunCallableRequest& m) {
  v(1, m.session);
  v(2, m.callable);
  v(3, m.feed_values);
}
template <typename V>
void VisitFields(V& v, RunCallableResponse& m) {
  v(1, m.fetches);
}
template <typename V>
void VisitFields(V& v, ReleaseCallableRequest& m) {
  v(1, m.session);
  v(2, m.callable);
}
template <typename V>
void VisitFields(V&, ReleaseCallableResponse&) {}

template <typename V>
void VisitFields(V& v, CloseSessionRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V&, CloseSessionResponse&) {}
template <typename V>
void VisitFields(V& v, ListDevicesRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V& v, ListDevicesResponse& m) {
  v(1, m.devices);
}
template <typename V>
void VisitFields(V& v, ResetMasterRequest& m) {
  v(1, m.containers);
  v(2, m.device_filters);
}
template <typename V>
void VisitFields(V&, ResetMasterResponse&) {}

template <typename V>
void VisitFields(V& v, ExplainStepRequest& m) {
  v(1, m.session);
  v(2, m.signature);
}
template <typename V>
void VisitFields(V& v, ExplainStepResponse& m) {
  v(1, m.text);
  v(2, m.json);
}
template <typename V>
void VisitFields(V& v, GetSessionRandomRequest& m) {
  v(1, m.session);
}
template <typename V>
void VisitFields(V& v, GetSessionRandomResponse& m) {
  VisitPositions(v, 1, m.positions);
}
template <typename V>
void VisitFields(V& v, SetSessionRandomRequest& m) {
  v(1, m.session);
  VisitPositions(v, 2, m.positions);
}
template <typename V>
void VisitFields(V&, SetSessionRandomResponse&) {}

}  // namespace millrace
