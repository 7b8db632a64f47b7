// SPDX-License-Identifier: Apache-2.0
// The table of op families: every op of the system is declared by one of these calls.
#pragma once

#include "op/op_registry.h"

namespace millrace {

void RegisterElementwiseOps(OpRegistry& registry);  // element-wise arithmetic, comparison, activations
void RegisterArrayOps(OpRegistry& registry);        // shape and movement of data
void RegisterIndexOps(OpRegistry& registry);        // gather, scatter, segments, blocks
void RegisterMathOps(OpRegistry& registry);         // reductions, scans, ranking, softmax
void RegisterLinalgOps(OpRegistry& registry);       // matrix products and factorisations
void RegisterNnOps(OpRegistry& registry);           // convolution, pooling, normalisation
void RegisterRnnOps(OpRegistry& registry);          // recurrent cells
void RegisterStateOps(OpRegistry& registry);        // variables and their updates
void RegisterTrainingOps(OpRegistry& registry);     // optimizer updates
void RegisterSdcaOps(OpRegistry& registry);         // dual coordinate ascent
void RegisterTreeOps(OpRegistry& registry);         // boosted trees
void RegisterRandomOps(OpRegistry& registry);       // random numbers
void RegisterRandomStateOps(OpRegistry& registry);  // random numbers of streams in variables
void RegisterCandidateOps(OpRegistry& registry);    // classes drawn for losses
void RegisterSparseOps(OpRegistry& registry);       // sparse tensors
void RegisterCtcOps(OpRegistry& registry);          // connectionist temporal classification
void RegisterIoOps(OpRegistry& registry);           // checkpoints and strings
void RegisterSummaryOps(OpRegistry& registry);      // summaries, printing, assertions
void RegisterEventOps(OpRegistry& registry);        // writers of event files
void RegisterControlFlowOps(OpRegistry& registry);  // what decides what runs, and how often
void RegisterFunctionalOps(OpRegistry& registry);   // calls, conditionals and loops made of functions
void RegisterBatchOps(OpRegistry& registry);        // several steps' inputs in one batch
void RegisterRuntimeOps(OpRegistry& registry);      // what the runtime itself puts into graphs
void RegisterStackOps(OpRegistry& registry);        // stacks of one step
void RegisterTensorArrayOps(OpRegistry& registry);  // arrays of tensors of one step
void RegisterTensorListOps(OpRegistry& registry);   // lists of tensors as values

void RegisterAllOps(OpRegistry& registry);

}  // namespace millrace
