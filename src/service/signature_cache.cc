// SPDX-License-Identifier: Apache-2.0
#include "service/signature_cache.h"

#include "base/exceptions.h"

namespace millrace {

Compiled::~Compiled() {
  // Best effort: a worker that cannot be told forgets them with the session.
  WithoutExceptions([&] {
    for (size_t w = 0; view && w < view->workers.size(); ++w) {
      DeregisterPartitionsRequest request{view->workers[w].session, {}};
      for (const CompiledPart& part : parts) {
        if (part.worker == w) request.handles.push_back(part.handle);
      }
      if (request.handles.empty()) continue;
      view->workers[w].worker->DeregisterPartitions(
          {}, std::move(request), [](const StatusOr<DeregisterPartitionsResponse>&) {});
    }
    return absl::OkStatus();
  }).IgnoreError();
}

// A plan without nodes takes room too.
int64_t SignatureCache::Weight(const Compiled& c) { return c.num_nodes + 16; }

CompiledPtr SignatureCache::Find(const RunSignatureView& signature) {
  if (!by_use_.empty() && KeyOf(*by_use_.front()) == signature) return by_use_.front();
  const auto it = places_.find(signature);
  if (it == places_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second);
  return by_use_.front();
}

std::vector<CompiledPtr> SignatureCache::Insert(CompiledPtr compiled) {
  by_use_.push_front(compiled);
  try {
    places_.emplace(KeyOf(*compiled), by_use_.begin());
  } catch (...) {
    by_use_.pop_front();
    throw;
  }
  num_nodes_ += Weight(*compiled);
  std::vector<CompiledPtr> dropped;
  while (num_nodes_ > max_nodes_ && by_use_.size() > 1) {
    dropped.push_back(by_use_.back());
    num_nodes_ -= Weight(*by_use_.back());
    places_.erase(KeyOf(*by_use_.back()));
    by_use_.pop_back();
  }
  return dropped;
}

std::list<CompiledPtr> SignatureCache::Clear() {
  places_.clear();
  num_nodes_ = 0;
  return std::exchange(by_use_, {});
}

}  // namespace millrace
