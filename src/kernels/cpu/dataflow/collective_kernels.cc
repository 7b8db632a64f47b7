// SPDX-License-Identifier: Apache-2.0
// CPU kernels: collectives, of groups that have one member.
#include "kernels/cpu/dataflow/queue_kernels.h"

namespace millrace {
namespace {

// What a group of one makes of its only value is that value.
class CollectiveKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const int64_t size, init.Attr<int64_t>("group_size"));
    if (size < 1) return InvalidArgument("group_size must be positive, got ", size);
    if (init.op.name == "CollectiveBcastRecv" && size == 1) {
      return InvalidArgument("a group of one member has nobody who sends to it");
    }
    if (size > 1) {
      return Unimplemented("a group of ", size, " members needs a cluster, which is not provided yet: in one process, ",
                           "combine the values by ops such as AddN and Concat");
    }
    if (init.HasAttr("shape")) {
      MR_ASSIGN_OR_RETURN(shape_, init.Attr<PartialShape>("shape"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!shape_.IsCompatibleWith(ctx.input(0).shape())) {
      return InvalidArgument(
          "shape is ", shape_.ToString(), ", the value of the only member ", ctx.input(0).shape().ToString());
    }
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }

 private:
  PartialShape shape_;
};

}  // namespace

void RegisterCollectiveKernels(KernelRegistry& r) {
  for (const char* op : {"CollectiveReduce", "CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv"}) {
    r.Add<CollectiveKernel>({.op = op});
  }
}

}  // namespace millrace
