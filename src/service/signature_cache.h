// SPDX-License-Identifier: Apache-2.0
// What a Coordinator has compiled, by run signature.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "passes/prune.h"
#include "service/worker_group.h"

namespace millrace {

struct CompiledPart {
  size_t worker = 0;  // of the view
  int64_t handle = 0;
  CutReport cut;
  std::shared_ptr<InlinePartition> inline_partition;  // null: it goes by messages
  std::vector<size_t> args;                           // argument i of the partition is feed args[i] of the client
  std::vector<size_t> retvals;                        // retval i of the partition is fetch retvals[i] of the client
};

// Its partitions stay registered with the workers, which outlive it, as long as it lives.
struct Compiled {
  explicit Compiled(WorkerViewPtr workers) : view(std::move(workers)) {}
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  const WorkerViewPtr view;
  RunSignature signature;
  bool through_rendezvous = false;               // for partial runs
  std::vector<CompiledPart> parts;               // by worker
  std::vector<std::vector<bool>> feeds_needed;   // of partial runs: by fetch, by feed
  std::vector<int64_t> feed_edges, fetch_edges;  // of partial runs; -1: nothing needs the feed
  int64_t num_nodes = 0;
  bool changes_variables = false;
  bool simple = false;  // one partition that runs inline, arguments and retvals in the client's order
};
using CompiledPtr = std::shared_ptr<const Compiled>;

// Looks a signature up without building one.
struct RunSignatureView {
  absl::Span<const Output> feeds;
  absl::Span<const Output> fetches;
  absl::Span<Node* const> targets;
  bool through_rendezvous = false;

  static RunSignatureView Of(const RunSignature& s, bool through_rendezvous) {
    return {s.feeds, s.fetches, s.targets, through_rendezvous};
  }
  friend bool operator==(const RunSignatureView& a, const RunSignatureView& b) {
    return a.feeds == b.feeds && a.fetches == b.fetches && a.targets == b.targets &&
           a.through_rendezvous == b.through_rendezvous;
  }
};
struct RunSignatureHash {
  size_t operator()(const RunSignatureView& v) const {
    return absl::HashOf(v.feeds, v.fetches, v.targets, v.through_rendezvous);
  }
};
template <typename T>
using BySignature = std::unordered_map<RunSignatureView, T, RunSignatureHash>;

// Keeps the plans that were used last, of `max_nodes` nodes at most in all; the newest stays in any case. External
// synchronization required. What it hands out or drops may be in use: it lives as long as that.
class SignatureCache {
 public:
  explicit SignatureCache(int64_t max_nodes) : max_nodes_(max_nodes) {}

  // Null when it is not here.
  CompiledPtr Find(const RunSignatureView& signature);
  // REQUIRES: its signature is not here. Returns what it dropped, to be freed where no lock is held.
  std::vector<CompiledPtr> Insert(CompiledPtr compiled);
  // Drops all, without a throw.
  std::list<CompiledPtr> Clear();

 private:
  static int64_t Weight(const Compiled& c);
  static RunSignatureView KeyOf(const Compiled& c) { return RunSignatureView::Of(c.signature, c.through_rendezvous); }

  const int64_t max_nodes_;
  int64_t num_nodes_ = 0;
  std::list<CompiledPtr> by_use_;  // the last used first
  BySignature<std::list<CompiledPtr>::iterator> places_;
};

}  // namespace millrace
