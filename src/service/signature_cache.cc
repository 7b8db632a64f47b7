// SPDX-License-Identifier: Apache-2.0
#include "service/signature_cache.h"

namespace millrace {

Compiled::~Compiled() {
  for (const CompiledPart& part : parts) workers[part.worker]->Deregister(part.handle);
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

}  // namespace millrace
