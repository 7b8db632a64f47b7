// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_spec.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace millrace {
namespace {

bool IsJobName(const std::string& name) {
  return !name.empty() && absl::ascii_isalpha(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

}  // namespace

std::string ClusterTask::name() const { return absl::StrCat("/job:", job, "/replica:0/task:", index); }

std::string HostPort::ToString() const { return absl::StrCat(host, ":", port); }

StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  const size_t bracket = address.rfind(']');
  HostPort parsed;
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  if (!has_port || !absl::SimpleAtoi(address.substr(colon + 1), &parsed.port) || parsed.port < 0 ||
      parsed.port > 65535) {
    return InvalidArgument(
        "Could not parse port for local server from \"", address.substr(0, 300), "\", want host:port");
  }
  parsed.host = address.substr(0, colon);
  const bool in_brackets = parsed.host.size() > 2 && parsed.host.front() == '[' && parsed.host.back() == ']';
  if (parsed.host.empty() || (!in_brackets && parsed.host.find_first_of(":/[] \t\n") != std::string::npos)) {
    return InvalidArgument("\"", address.substr(0, 300), "\" has no host, want host:port");
  }
  return parsed;
}

std::string AddressKey(const HostPort& address) {
  const bool is_own = address.host == "localhost" || address.host == "[::1]";
  return HostPort{is_own ? "127.0.0.1" : absl::AsciiStrToLower(address.host), address.port}.ToString();
}

StatusOr<ClusterSpec> ClusterSpec::Make(const wire::ClusterDef& def) {
  ClusterSpec spec;
  std::set<std::string> jobs;
  for (const wire::JobDef& job : def.job) {
    if (!IsJobName(job.name)) {
      return InvalidArgument(
          "'", job.name.substr(0, 300), "' is no name of a job, want a letter, then letters, digits, '_'");
    }
    if (!jobs.insert(job.name).second) return InvalidArgument("job '", job.name, "' is given twice");
    for (const auto& [index, address] : job.tasks) {
      if (index < 0) return InvalidArgument("job '", job.name, "' has a task ", index);
      MR_RETURN_IF_ERROR(
          Annotate(ParseHostPort(address).status(), absl::StrCat("task ", index, " of job '", job.name, "': ")));
      spec.tasks_.push_back({job.name, index, address});
    }
  }
  if (spec.tasks_.empty()) return InvalidArgument("the cluster has no tasks");
  std::sort(spec.tasks_.begin(), spec.tasks_.end(), [](const ClusterTask& a, const ClusterTask& b) {
    return std::pair(a.job, a.index) < std::pair(b.job, b.index);
  });
  std::map<std::string, const ClusterTask*> by_address;
  for (const ClusterTask& t : spec.tasks_) {
    MR_ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(t.address));
    if (at.port == 0) continue;  // any that is free
    const auto [known, is_new] = by_address.emplace(AddressKey(at), &t);
    if (!is_new) return InvalidArgument(known->second->name(), " and ", t.name(), " have the address ", t.address);
  }
  return spec;
}

const ClusterTask* ClusterSpec::Find(const std::string& job, int index) const {
  const auto at = std::find_if(
      tasks_.begin(), tasks_.end(), [&](const ClusterTask& t) { return t.job == job && t.index == index; });
  return at == tasks_.end() ? nullptr : &*at;
}

void ClusterSpec::SetAddress(const std::string& job, int index, std::string address) {
  for (ClusterTask& t : tasks_) {
    if (t.job == job && t.index == index) t.address = std::move(address);
  }
}

}  // namespace millrace
