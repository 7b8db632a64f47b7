// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/kernel_list.h"

#include "kernels/cpu/any_device.h"
#include "kernels/cpu/audio/audio.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/reader_kernels.h"
#include "kernels/cpu/dataflow/client_function_kernels.h"
#include "kernels/cpu/dataflow/queue_kernels.h"
#include "kernels/cpu/engine/instruction_sets.h"
#include "kernels/cpu/image/image.h"
#include "kernels/cpu/parsing/parsing.h"
#include "kernels/cpu/quantize/quantize_kernels.h"
#include "kernels/cpu/signal/signal.h"
#include "kernels/cpu/state/lookup.h"
#include "kernels/cpu/state/session_tensors.h"
#include "kernels/cpu/text/string_texts.h"
#include "kernels/cpu/text/strings.h"

namespace millrace {

void RegisterCpuKernels(KernelRegistry& registry) {
  LimitInstructionSets();
  RegisterKernelsOfAnyDevice(registry, "CPU");
  RegisterElementwiseKernels(registry);
  RegisterArrayKernels(registry);
  RegisterIndexKernels(registry);
  RegisterMathKernels(registry);
  RegisterLinalgKernels(registry);
  RegisterNnKernels(registry);
  RegisterRnnKernels(registry);
  RegisterStateKernels(registry);
  RegisterTrainingKernels(registry);
  RegisterSdcaKernels(registry);
  RegisterTreeKernels(registry);
  RegisterRandomKernels(registry);
  RegisterCandidateKernels(registry);
  RegisterSparseKernels(registry);
  RegisterCtcKernels(registry);
  RegisterImageKernels(registry);
  RegisterStringKernels(registry);
  RegisterParsingKernels(registry);
  RegisterIoKernels(registry);
  RegisterSummaryKernels(registry);
  RegisterControlFlowKernels(registry);
  RegisterFunctionalKernels(registry);
  RegisterClientFunctionKernels(registry);
  RegisterRuntimeKernels(registry);
  RegisterStackKernels(registry);
  RegisterTensorArrayKernels(registry);
  RegisterTensorListKernels(registry);
  RegisterQueueKernels(registry);
  RegisterLookupKernels(registry);
  RegisterReaderKernels(registry);
  RegisterTextKernels(registry);
  RegisterAudioKernels(registry);
  RegisterDatasetKernels(registry);
  RegisterSignalKernels(registry);
  RegisterSessionTensorKernels(registry);
  RegisterQuantizeKernels(registry);
}

}  // namespace millrace
