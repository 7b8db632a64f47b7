// SPDX-License-Identifier: Apache-2.0
// Data sets as graphs: the nodes that made them, with what these took as constants, and the functions that they name.
// So a data set is kept in a file, and made again in a session that does not have its graph.
#pragma once

#include <string>

#include "base/hash_map.h"
#include "kernels/cpu/data/dataset.h"
#include "wire/graph.h"

namespace millrace {

// The last node is a _Retval of the data set. Unimplemented, with the reason, where the data set or one that it is made
// of took what no graph can hold: resources, or data sets that were elements of others. `names`: gets those of the
// nodes of the data sets.
StatusOr<wire::GraphDef> GraphOfDataset(const Dataset& dataset, HashMap<const Dataset*, std::string>* names = nullptr);

// A number for what the data set does, the same for those that programs make in the same way: whatever their functions
// are called, and whatever seeds were drawn. Unimplemented as above.
StatusOr<uint64_t> FingerprintOfDataset(const Dataset& dataset);

// Has the random orders of `own` begin from the seeds of `saved`, where both are graphs of the same ops.
void TakeSeeds(const wire::GraphDef& saved, wire::GraphDef* own);

// The data set of a graph as above. The graph is checked as any that is imported.
StatusOr<DatasetRef> DatasetFromGraph(DataContext& ctx, wire::GraphDef graph, FunctionSource& functions);

// The same data set made once more, with random orders and functions that begin anew; itself where it has no graph.
StatusOr<DatasetRef> MadeAgain(DataContext& ctx, const DatasetRef& dataset, FunctionSource* functions);

}  // namespace millrace
