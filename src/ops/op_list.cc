// SPDX-License-Identifier: Apache-2.0
#include "ops/op_list.h"

#include "ops/audio/audio_ops.h"
#include "ops/data/dataset_ops.h"
#include "ops/data/reader_ops.h"
#include "ops/dataflow/client_function_ops.h"
#include "ops/dataflow/queue_ops.h"
#include "ops/image/image_ops.h"
#include "ops/parsing/parsing_ops.h"
#include "ops/quantize/quantize_ops.h"
#include "ops/signal/signal_ops.h"
#include "ops/state/lookup_ops.h"
#include "ops/text/string_ops.h"
#include "ops/text/text_ops.h"

namespace millrace {

void RegisterAllOps(OpRegistry& registry) {
  RegisterElementwiseOps(registry);
  RegisterArrayOps(registry);
  RegisterIndexOps(registry);
  RegisterMathOps(registry);
  RegisterLinalgOps(registry);
  RegisterNnOps(registry);
  RegisterRnnOps(registry);
  RegisterStateOps(registry);
  RegisterTrainingOps(registry);
  RegisterSdcaOps(registry);
  RegisterTreeOps(registry);
  RegisterRandomOps(registry);
  RegisterRandomStateOps(registry);
  RegisterCandidateOps(registry);
  RegisterSparseOps(registry);
  RegisterCtcOps(registry);
  RegisterImageOps(registry);
  RegisterStringOps(registry);
  RegisterParsingOps(registry);
  RegisterIoOps(registry);
  RegisterSummaryOps(registry);
  RegisterEventOps(registry);
  RegisterControlFlowOps(registry);
  RegisterFunctionalOps(registry);
  RegisterBatchOps(registry);
  RegisterClientFunctionOps(registry);
  RegisterRuntimeOps(registry);
  RegisterStackOps(registry);
  RegisterTensorArrayOps(registry);
  RegisterTensorListOps(registry);
  RegisterQueueOps(registry);
  RegisterLookupOps(registry);
  RegisterReaderOps(registry);
  RegisterTextOps(registry);
  RegisterAudioOps(registry);
  RegisterDatasetOps(registry);
  RegisterSignalOps(registry);
  RegisterQuantizeOps(registry);
}

}  // namespace millrace
