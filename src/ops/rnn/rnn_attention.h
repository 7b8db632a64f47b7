// SPDX-License-Identifier: Apache-2.0
// Attention over a memory [batch, steps, depth] and its keys [batch, steps, units]; what the composites and the cell
// AttentionWrapper share.
#pragma once

#include "graph/graph_builder.h"

namespace millrace {

// [batch, steps]: v . tanh(keys + query + bias), query [batch, units] (Bahdanau et al. 2014). `bias` may be null.
Output AdditiveScores(const GraphBuilder& b, Output query, Output keys, Output v, Output bias);

// [batch, steps]: keys . query (Luong et al. 2015).
Output MultiplicativeScores(const GraphBuilder& b, Output query, Output keys);

// [batch, depth]: the mean of the memory by `weights` [batch, steps].
Output ReadMemory(const GraphBuilder& b, Output weights, Output memory);

// bool [batch, steps]: which steps of the memory are within the lengths, int64 [batch].
Output WithinLengths(const GraphBuilder& b, Output memory, Output lengths);

}  // namespace millrace
