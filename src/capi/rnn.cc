// SPDX-License-Identifier: Apache-2.0
// What clients ask about recurrent cells.
#include "capi/internal.h"
#include "client/rnn_variables.h"
#include "millrace/c_api_training.h"
#include "system/system.h"

using millrace::CellLayout;
using millrace::InvalidArgument;
using millrace::RnnCellPtr;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsTfOutput;
using millrace::capi::GuardedOr;

namespace {

StatusOr<CellLayout> LayoutOf(const char* text, int64_t inputs) {
  MR_ASSIGN_OR_RETURN(const RnnCellPtr cell, millrace::ParseRnnCell(text));
  return millrace::DescribeCell(*cell, inputs);
}

Status CheckRoom(size_t count, int max, const char* what) {
  if (max >= 0 && count <= static_cast<size_t>(max)) return absl::OkStatus();
  return InvalidArgument("the cell has ", count, " ", what, ", there is room for ", max);
}

}  // namespace

int MR_CellStates(const char* cell, int64_t inputs, int64_t* sizes, int max_states, int64_t* output_size,
                  TF_Status* status) {
  return GuardedOr<int>(status, 0, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(cell);
    MR_CAPI_REQUIRE(sizes);
    MR_ASSIGN_OR_RETURN(const CellLayout layout, LayoutOf(cell, inputs));
    MR_RETURN_IF_ERROR(CheckRoom(layout.state_sizes.size(), max_states, "states"));
    std::copy(layout.state_sizes.begin(), layout.state_sizes.end(), sizes);
    if (output_size) *output_size = layout.output_size;
    return static_cast<int>(layout.state_sizes.size());
  });
}

int MR_AddCellVariables(TF_Graph* graph, const char* scope, const char* cell, int64_t inputs, TF_DataType dtype,
                        int64_t seed, TF_Output* refs, TF_Output* reads, int max_variables, TF_Status* status) {
  return GuardedOr<int>(status, 0, [&]() -> StatusOr<int> {
    MR_CAPI_REQUIRE(graph);
    MR_CAPI_REQUIRE(scope);
    MR_CAPI_REQUIRE(cell);
    MR_CAPI_REQUIRE(refs);
    MR_CAPI_REQUIRE(reads);
    MR_ASSIGN_OR_RETURN(const CellLayout layout, LayoutOf(cell, inputs));
    MR_RETURN_IF_ERROR(CheckRoom(layout.parameters.size(), max_variables, "variables"));
    millrace::GraphLock lock(&graph->shared->mu);
    MR_ASSIGN_OR_RETURN(
        const std::vector<millrace::ClientVariable> made,
        millrace::AddCellVariables(
            millrace::System::Default().composites(), millrace::GraphBuilder(&graph->shared->graph), scope, layout,
            static_cast<millrace::DType>(dtype), seed));
    for (size_t i = 0; i < made.size(); ++i) {
      refs[i] = AsTfOutput(made[i].ref);
      reads[i] = AsTfOutput(made[i].read);
    }
    return static_cast<int>(made.size());
  });
}
