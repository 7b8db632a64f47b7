// SPDX-License-Identifier: Apache-2.0
// A client of a simulated cluster: a graph with a session on its own machine's server, and a saver on that machine's
// disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/remote_session.h"
#include "client/saver.h"
#include "graph/graph_builder.h"
#include "simulation/training.h"
#include "system/system.h"

namespace millrace {

inline constexpr char kCheckpointFolder[] = "/checkpoints";

class Training::Client {
 public:
  Client(SimTask& task, absl::Duration timeout) : task_(task) {
    if (timeout < absl::InfiniteDuration()) config_.operation_timeout_in_ms = timeout / absl::Milliseconds(1);
    config_.rpc_options.Ensure().use_rpc_for_inprocess_master = true;
  }
  template <typename Use>
  auto WithGraph(Use use) {
    const GraphLock lock(&graph->mu);
    return use(graph->graph);
  }
  template <typename Build>
  Status Add(Build build) {
    return WithGraph([&](Graph& g) {
      const GraphBuilder b(&g);
      build(b);
      return b.status();
    });
  }
  // Nodes that name no task run on the first one: its own name the client's.
  Status AddSaver() {
    const int first = WithGraph([](const Graph& g) { return g.num_node_ids(); });
    MR_ASSIGN_OR_RETURN(saver, Saver::Create(task_.host(), graph, {}));
    WithGraph([&](Graph& g) {
      for (Node* n : g.nodes()) {
        if (n->id() >= first && !n->attrs().contains("_class")) n->set_device(task_.name() + "/device:CPU:0");
      }
      return 0;
    });
    return absl::OkStatus();
  }
  Status Open() {
    session = nullptr;
    MR_ASSIGN_OR_RETURN(session, NewRemoteSession(graph, config_, task_.target(), &task_.channels()));
    return absl::OkStatus();
  }
  // All sessions of the cluster's workers are closed, and their state is gone.
  Status ResetCluster() {
    session = nullptr;
    return ResetRemote(task_.target(), config_, {}, &task_.channels());
  }
  StatusOr<std::vector<Tensor>> Run(
      const std::vector<Output>& fetches, const std::vector<Node*>& targets = {}, const std::vector<Output>& feeds = {},
      const std::vector<Tensor>& values = {}, const wire::RunOptions* options = nullptr) {
    std::vector<Tensor> outputs;
    MR_RETURN_IF_ERROR(session->Run(options, feeds, values, fetches, targets, &outputs, nullptr));
    return outputs;
  }

  const RefPtr<SharedGraph> graph = MakeRef<SharedGraph>(&System::Default().ops());
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Session> session;

 private:
  SimTask& task_;
  wire::ConfigProto config_;
};

}  // namespace millrace
