// SPDX-License-Identifier: Apache-2.0
// Which tasks a cluster has, and where they listen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "wire/config.h"

namespace millrace {

struct ClusterTask {
  std::string job;
  int index = 0;
  std::string address;  // "host:port"

  std::string name() const;  // "/job:<job>/replica:0/task:<index>"
};

class ClusterSpec {
 public:
  // InvalidArgument: no job, a job without a legal name or named twice, a task below 0, an address that is none, or
  // that two tasks have (with a port other than 0).
  static StatusOr<ClusterSpec> Make(const wire::ClusterDef& def);

  // By job and index.
  const std::vector<ClusterTask>& tasks() const { return tasks_; }
  // Null: there is none.
  const ClusterTask* Find(const std::string& job, int index) const;
  void SetAddress(const std::string& job, int index, std::string address);

 private:
  std::vector<ClusterTask> tasks_;
};

struct HostPort {
  std::string host;
  int port = 0;
  std::string ToString() const;
};
// "host:port", with port 0 to 65535; IPv6 hosts in brackets. InvalidArgument naming what is wrong.
StatusOr<HostPort> ParseHostPort(const std::string& address);
// The same text for the names that a host has for itself: "localhost", "127.0.0.1", "[::1]".
std::string AddressKey(const HostPort& address);

}  // namespace millrace
