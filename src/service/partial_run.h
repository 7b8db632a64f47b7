// SPDX-License-Identifier: Apache-2.0
// A compiled signature, and a step whose feeds and fetches come in several calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/prune.h"
#include "service/joint_step.h"

namespace millrace {

struct CompiledPart {
  size_t worker = 0;
  int64_t handle = 0;
  std::shared_ptr<const InlinePartition> inline_partition;  // null: it may have to wait
  std::vector<size_t> args;                                 // argument i of the partition is feed args[i] of the client
  std::vector<size_t> retvals;  // retval i of the partition is fetch retvals[i] of the client
};
struct Compiled {
  RunSignature signature;
  std::vector<CompiledPart> parts;
  std::vector<bool> takes_part;  // by worker
  bool simple = false;           // one partition that runs inline, arguments and retvals in the client's order
};

// Numbers the partition's _Arg and _Retval nodes from 0 and records which feed or fetch each is.
Status RenumberArguments(Graph& graph, CompiledPart* part);
// Existence and dtype.
Status CheckFeed(const Output& o, const Tensor& value);

// Thread-safe. Every value crosses the rendezvous of the first worker, whose first device, `client`, stands for the
// client.
class PartialStep {
 public:
  PartialStep(std::vector<Worker*> workers, std::shared_ptr<const Compiled> compiled, RunSignature signature,
              DeviceInfo client);
  ~PartialStep();  // stops what still runs, and waits for it

  // Once, before all else; it then runs in the background.
  Status Start(const StepSpec& spec);

  // Gives feeds, waits for fetches. InvalidArgument: an unknown name, one used before, a fetch whose feeds are not
  // there.
  Status Advance(absl::Span<const Output> feeds, absl::Span<const Tensor> values, absl::Span<const Output> fetches,
                 std::vector<Tensor>* outputs);
  void Stop(const Status& why) { step_.Stop(why); }
  Status Wait();          // until all of the step has run
  bool Finished() const;  // every feed given and every fetch taken

 private:
  std::string KeyOf(const char* what, Output o) const;

  const std::vector<Worker*> workers_;
  const std::shared_ptr<const Compiled> compiled_;
  const RunSignature signature_;
  const std::vector<std::vector<bool>> feeds_needed_;
  const DeviceInfo client_;
  JointStep step_;
  std::vector<std::vector<Tensor>> retvals_;
  mutable absl::Mutex mu_;
  size_t parts_left_ ABSL_GUARDED_BY(mu_) = 0;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> fed_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> fetched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
