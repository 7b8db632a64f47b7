// SPDX-License-Identifier: Apache-2.0
#include "service/joint_step.h"

namespace millrace {

Status JointStep::Open(absl::Span<Worker* const> workers, const std::vector<bool>& takes_part, const StepSpec& spec) {
  std::vector<std::unique_ptr<WorkerStep>> parts(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!takes_part[i]) continue;
    MR_ASSIGN_OR_RETURN(parts[i], workers[i]->OpenStep(spec));
  }
  parts_ = std::move(parts);
  absl::MutexLock lock(&mu_);
  open_ = true;
  return stopped_;
}

void JointStep::Stop(const Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!stopped_.ok()) return;
    stopped_ = why;
    if (!open_) return;
  }
  for (const auto& part : parts_) {
    if (part) part->Stop(why);
  }
}

}  // namespace millrace
