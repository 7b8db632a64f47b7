/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditionals and loops. The client states what is inside by callbacks (or, where it cannot, between a Begin and an
 * End); they add operations to the graph as always, by TF_FinishOperation, composites, gradients, imports or further
 * conditionals and loops, and may read any tensor of the graph: the library carries in what lies outside and makes
 * every operation run only when its branch is taken, and once an iteration. The nodes are those that TensorFlow 1.x
 * builds (Switch, Merge, Enter, Exit, NextIteration, LoopCond, TensorArray operations).
 *
 * An error leaves the graph as it was before; operations that were made inside are gone then. While a thread builds,
 * others may look at the graph, but whoever changes it, or runs something new, waits until the building thread is done.
 * So a client must not, on its other threads, hold a lock that its callbacks need (an interpreter's, for instance)
 * while it calls functions that change the graph. No step can start from inside a callback.
 *
 * Conventions are those of c_api.h: the status comes last, objects are opaque. Nested structures are the client's
 * matter: it flattens them.
 */
#ifndef MILLRACE_C_API_CONTROL_FLOW_H_
#define MILLRACE_C_API_CONTROL_FLOW_H_

#include "millrace/c_api_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A list of tensors. */
typedef struct MR_Outputs MR_Outputs;
TF_CAPI_EXPORT MR_Outputs* MR_NewOutputs(void);
TF_CAPI_EXPORT void MR_DeleteOutputs(MR_Outputs* list);
TF_CAPI_EXPORT void MR_OutputsAppend(MR_Outputs* list, TF_Output output);
TF_CAPI_EXPORT int MR_OutputsSize(const MR_Outputs* list);
/* {NULL, -1} for an index that there is not. */
TF_CAPI_EXPORT TF_Output MR_OutputsGet(const MR_Outputs* list, int index);

/* Builds a part of `graph` and appends its results to `results`. `scope` ("outer/while/") is what names of operations
 * inside should begin with. A branch of a conditional may append {operation, -1}: that operation shall run; its result
 * then is a tensor that is there when it has run. A callback reports failure through `status`; what is being built
 * fails with the same code and message. */
typedef void (*MR_BuildFn)(void* data, TF_Graph* graph, const char* scope, const TF_Output* inputs, int num_inputs,
                           MR_Outputs* results, TF_Status* status);

/* All zeros (but struct_size, or even a NULL pointer to it) means the defaults. */
typedef struct MR_FlowOptions {
  size_t struct_size;                  /* sizeof(MR_FlowOptions) */
  const char* name;                    /* the scope of what is built, made unique; NULL: "cond", "while", "map", ... */
  const char* device;                  /* of the nodes that the library adds; NULL: none */
  TF_Operation* const* control_inputs; /* nothing inside starts before these have run */
  int num_control_inputs;
  int parallel_iterations;      /* how many iterations may be under way at once; 0: 10 */
  unsigned char no_back_prop;   /* no gradient flows through the loop */
  unsigned char swap_memory;    /* what the gradient needs of each iteration may go to the host's memory */
  unsigned char reverse;        /* MR_Scan: from the last element to the first */
  TF_Output maximum_iterations; /* an int32 or int64 scalar; oper NULL: no limit */
  /* MR_WhileLoop: what is to be known of each variable's shape in every iteration, one rank per variable (-1: not even
   * the rank; -2: the shape that it starts with) and its dimensions (-1: not known). NULL: the shapes that they start
   * with. */
  const int* invariant_ranks;
  const int64_t* const* invariant_dims;
} MR_FlowOptions;

/* The results of if_true where `predicate`, a bool scalar, is true, else those of if_false, which must be as many and
 * of the same types. */
TF_CAPI_EXPORT void MR_Cond(TF_Graph* graph, const MR_FlowOptions* options, TF_Output predicate, MR_BuildFn if_true,
                            void* true_data, MR_BuildFn if_false, void* false_data, MR_Outputs* results,
                            TF_Status* status);

/* The results of the first branch whose predicate is true, else those of `otherwise`; where that is NULL, a step in
 * which no predicate is true fails. `exclusive`: a step in which more than one is true fails. */
TF_CAPI_EXPORT void MR_Case(
    TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* predicates, const MR_BuildFn* branches,
    void* const* branch_data, int num_branches, MR_BuildFn otherwise, void* otherwise_data, unsigned char exclusive,
    MR_Outputs* results, TF_Status* status);

/* Repeats `body`, which returns the variables' next values, while `condition`, which returns one bool scalar, is true.
 * The inputs of both are the variables. The results are the last values. */
TF_CAPI_EXPORT void MR_WhileLoop(
    TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* variables, int num_variables, MR_BuildFn condition,
    void* condition_data, MR_BuildFn body, void* body_data, MR_Outputs* results, TF_Status* status);

/* fn of each element along the first dimension of `elements`, which are taken together; its results, of these types
 * (num_dtypes 0: those of the elements), stacked. */
TF_CAPI_EXPORT void MR_MapFn(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements,
                             int num_elements, const TF_DataType* dtypes, int num_dtypes, MR_BuildFn fn, void* data,
                             MR_Outputs* results, TF_Status* status);

/* The last of the accumulators that fn makes of the accumulators and an element (its inputs, in this order), from the
 * first to the last element (FoldL) or the other way (FoldR). num_initial 0: the element that it begins with is the
 * first accumulator. */
TF_CAPI_EXPORT void MR_FoldL(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements,
                             int num_elements, const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data,
                             MR_Outputs* results, TF_Status* status);
TF_CAPI_EXPORT void MR_FoldR(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements,
                             int num_elements, const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data,
                             MR_Outputs* results, TF_Status* status);
/* Likewise, but all the accumulators, stacked. */
TF_CAPI_EXPORT void MR_Scan(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* elements, int num_elements,
                            const TF_Output* initial, int num_initial, MR_BuildFn fn, void* data, MR_Outputs* results,
                            TF_Status* status);

/* The tensor, once these operations have run. */
TF_CAPI_EXPORT TF_Output MR_WithDependencies(
    TF_Graph* graph, const MR_FlowOptions* options, TF_Operation* const* operations, int num_operations,
    TF_Output value, TF_Status* status);
/* An operation that has run once all these have. */
TF_CAPI_EXPORT TF_Operation* MR_Group(TF_Graph* graph, const MR_FlowOptions* options, TF_Operation* const* operations,
                                      int num_operations, TF_Status* status);
/* The tensors, none of which is there before all of them are and the operations have run. An output with oper NULL
 * stays that. */
TF_CAPI_EXPORT void MR_Tuple(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* values, int num_values,
                             TF_Operation* const* operations, int num_operations, MR_Outputs* results,
                             TF_Status* status);

/* The same without callbacks. Between Begin and End everything that the thread adds to the graph is inside. Blocks end
 * in the reverse order of their beginnings, on the thread that began them; those still open when a callback returns are
 * taken back, and the callback has failed. An End that succeeds deletes the block; after any failure abort it. */
typedef struct MR_Block MR_Block;
/* As a callback's `scope`; lives as long as the block. */
TF_CAPI_EXPORT const char* MR_BlockScope(const MR_Block* block);
/* Takes back what was built, in blocks inside it too, and deletes the block. On another thread than that which began
 * it, or in a callback that runs inside it, this does nothing. */
TF_CAPI_EXPORT void MR_BlockAbort(MR_Block* block);

TF_CAPI_EXPORT MR_Block* MR_CondBegin(TF_Graph* graph, const MR_FlowOptions* options, TF_Output predicate,
                                      TF_Status* status);
TF_CAPI_EXPORT void MR_CondElse(MR_Block* block, const TF_Output* true_results, int num_results, TF_Status* status);
TF_CAPI_EXPORT void MR_CondEnd(MR_Block* block, const TF_Output* false_results, int num_results, MR_Outputs* results,
                               TF_Status* status);

/* `inputs` gets what the condition (Begin), then the body (Body) reads. */
TF_CAPI_EXPORT MR_Block* MR_WhileBegin(TF_Graph* graph, const MR_FlowOptions* options, const TF_Output* variables,
                                       int num_variables, MR_Outputs* inputs, TF_Status* status);
TF_CAPI_EXPORT void MR_WhileBody(MR_Block* block, TF_Output condition, MR_Outputs* inputs, TF_Status* status);
TF_CAPI_EXPORT void MR_WhileEnd(MR_Block* block, const TF_Output* results, int num_results, MR_Outputs* values,
                                TF_Status* status);

/* What is added between these is outside every conditional and loop that is being built: variables and their first
 * values belong there, wherever they are asked for. Suspend returns what Resume takes. Pairs may nest. */
TF_CAPI_EXPORT void* MR_FlowSuspend(TF_Graph* graph);
TF_CAPI_EXPORT void MR_FlowResume(TF_Graph* graph, void* suspended);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_CONTROL_FLOW_H_ */
