// SPDX-License-Identifier: Apache-2.0
// The one place that knows everyone: op and kernel registries, devices, sessions, put together by plain calls.
#pragma once

#include <memory>
#include <string>

#include "client/session.h"
#include "kernel/kernel_registry.h"
#include "op/op_registry.h"
#include "ops/composite.h"
#include "system/device_types.h"

namespace millrace {

class Server;

class System {
 public:
  // The process's system, built on first use (about a millisecond) and never destroyed.
  static System& Default();

  System();
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  OpRegistry& ops();
  KernelRegistry& kernels();
  CompositeRegistry& composites();

  // Sessions made later have its devices. AlreadyExists: the type is taken.
  Status AddDeviceType(DeviceType type);
  bool HasDeviceType(const std::string& name) const;

  // `target` "" or "local" means in this process, "grpc://host:port" a server. The session shares `graph` with the
  // client.
  StatusOr<std::unique_ptr<Session>> NewSession(RefPtr<SharedGraph> graph, const wire::ConfigProto& config,
                                                const std::string& target = "", const Determinism& determinism = {});
  // Drops the variables and other resources of these containers in all local devices, or those of the target's cluster
  // (all containers when empty).
  Status Reset(const std::vector<std::string>& containers, const wire::ConfigProto& config = {},
               const std::string& target = "");
  // A server of this process (cluster/server.h), which has to be started.
  StatusOr<std::unique_ptr<Server>> NewServer(const wire::ServerDef& def);
  // What the server at "grpc://host:port" tells of itself, one JSON object (cluster/server_status.h).
  StatusOr<std::string> ServerStatus(const std::string& target, absl::Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
