// SPDX-License-Identifier: Apache-2.0
// Ops: mutexes.
#include "op/shape_context.h"
#include "ops/dataflow/queue_ops.h"

namespace millrace {

void RegisterMutexOps(OpRegistry& r) {
  const char* state = "a mutex is state";
  r.Add("MutexV2() -> (resource:res) | container:string=\"\"; shared_name:string=\"\" | S")
      .Doc("A mutex, which outlives steps.")
      .Shape(ScalarShape)
      .NotDifferentiable(state)
      .NoExample(state);
  r.Add("MutexLock(mutex:res) -> (mutex_lock:var) | S")
      .Traits({OpTrait::kWaits})
      .Doc(
          "Waits for a mutex and takes it. The mutex is free again when nobody holds the lock any more; "
          "ConsumeMutexLock keeps it until then.")
      .Shape(ScalarShape)
      .NotDifferentiable(state)
      .NoExample(state);
  r.Add("ConsumeMutexLock(mutex_lock:var) -> () | S")
      .Doc("Ends a lock. It must be the only one that has it.")
      .Shape(NoOutputs)
      .NotDifferentiable(state)
      .NoExample(state);
}

}  // namespace millrace
