// SPDX-License-Identifier: Apache-2.0
#include "cluster/local_servers.h"

namespace millrace {

struct LocalServers::Entry {
  LocalServer server;
  absl::Mutex mu;
  bool is_open ABSL_GUARDED_BY(mu) = false;
  int64_t holds ABSL_GUARDED_BY(mu) = 0;
};

LocalServers& LocalServers::Get() {
  static LocalServers* servers = new LocalServers();  // clients may outlive static destruction
  return *servers;
}

LocalServers::Hold& LocalServers::Hold::operator=(Hold&& o) noexcept {
  if (this != &o) {
    Release();
    entry_ = std::move(o.entry_);
  }
  return *this;
}

const LocalServer* LocalServers::Hold::operator->() const { return &entry_->server; }

void LocalServers::Hold::Release() {
  if (!entry_) return;
  const std::shared_ptr<Entry> entry = std::move(entry_);
  absl::MutexLock lock(&entry->mu);
  --entry->holds;
}

bool LocalServers::Add(const HostPort& address, const LocalServer& server) {
  auto entry = std::make_shared<Entry>();
  entry->server = server;
  absl::MutexLock lock(&mu_);
  return entries_.emplace(AddressKey(address), std::move(entry)).second;
}

HostPort LocalServers::AddAnywhere(const std::string& host, const LocalServer& server) {
  HostPort address{host, 1};
  while (!Add(address, server)) ++address.port;
  return address;
}

std::shared_ptr<LocalServers::Entry> LocalServers::At(const HostPort& address) {
  absl::MutexLock lock(&mu_);
  const auto at = entries_.find(AddressKey(address));
  return at == entries_.end() ? nullptr : at->second;
}

void LocalServers::Open(const HostPort& address) {
  if (const std::shared_ptr<Entry> entry = At(address)) {
    absl::MutexLock lock(&entry->mu);
    entry->is_open = true;
  }
}

void LocalServers::Withdraw(const HostPort& address) {
  if (const std::shared_ptr<Entry> entry = At(address)) {
    absl::MutexLock lock(&entry->mu);
    entry->is_open = false;
  }
}

void LocalServers::Remove(const HostPort& address, Env& env) {
  const std::shared_ptr<Entry> entry = At(address);
  if (!entry) return;
  {
    absl::MutexLock lock(&entry->mu);
    env.Await(entry->mu, absl::Condition(+[](int64_t* holds) { return *holds == 0; }, &entry->holds));
  }
  absl::MutexLock lock(&mu_);
  entries_.erase(AddressKey(address));
}

LocalServers::Hold LocalServers::Find(const HostPort& address) {
  std::shared_ptr<Entry> entry = At(address);
  if (!entry) return {};
  absl::MutexLock lock(&entry->mu);
  if (!entry->is_open) return {};
  ++entry->holds;
  return Hold(entry);
}

}  // namespace millrace
