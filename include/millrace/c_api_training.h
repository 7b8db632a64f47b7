/* SPDX-License-Identifier: Apache-2.0
 *
 * What this library adds to TensorFlow's C API for clients that build models: composites (made of ops, declared once in
 * the core), variables, optimizers. Conventions are those of c_api.h: the status comes last, objects are opaque.
 */
#ifndef MILLRACE_C_API_TRAINING_H_
#define MILLRACE_C_API_TRAINING_H_

#include "millrace/c_api_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Expands a composite. `desc` comes from TF_NewOperation(graph, "<composite>", name) and has got its inputs and
 * attributes by the TF_AddInput and TF_SetAttr functions; it is consumed. Writes at most max_outputs outputs and
 * returns how many there are (0 on error). */
TF_CAPI_EXPORT int MR_FinishComposite(TF_OperationDescription* desc, TF_Output* outputs, int max_outputs,
                                      TF_Status* status);

/* Adds a variable with nodes name, name/Assign, name/read. The shape of `initial` must be fully known. *ref is what
 * optimizers and assignments take, *read what computations take. */
TF_CAPI_EXPORT void MR_AddVariable(TF_Graph* graph, const char* name, TF_Output initial, TF_Output* ref,
                                   TF_Output* read, TF_Status* status);

/* An operation that gives every variable of the graph its first value, but those with a true attribute "_local". */
TF_CAPI_EXPORT TF_Operation* MR_AddInitializer(TF_Graph* graph, const char* name, TF_Status* status);

/* Adds the gradients of `loss` with respect to the variables `vars` (their refs) and one optimizer update each; returns
 * the operation that does one training step. `optimizer` is GradientDescent, Momentum, Adagrad, Adadelta, Adam, AdaMax,
 * RMSProp, CenteredRMSProp or Ftrl; hyper-parameters that are not given have TensorFlow's defaults. global_step.oper
 * may be NULL; otherwise it is an integer variable that counts the steps. Gradients of embedding look-ups stay sparse.
 * `name`, made unique, is that of the operation; NULL: the optimizer's.
 * clip_global_norm > 0 scales dense gradients down to that common norm. */
TF_CAPI_EXPORT TF_Operation* MR_Minimize(
    TF_Graph* graph, const char* optimizer, const char* name, const char* const* hyper_names,
    const TF_Output* hyper_values, int num_hyper, TF_Output loss, const TF_Output* vars, int num_vars,
    TF_Output global_step, float clip_global_norm, TF_Status* status);

/* Recurrent cells are named by a text, for the attributes `cell` of the composites RNNCell, StaticRNN, DynamicRNN and
 * so on: "LSTMCell(num_units=128, use_peepholes=true)", "MultiRNNCell(GRUCell(num_units=64), GRUCell(num_units=64))".
 *
 * The widths of the cell's states for inputs of this width; returns how many there are. -1: as wide as the memory of an
 * AttentionWrapper is long. output_size may be NULL. */
TF_CAPI_EXPORT int MR_CellStates(const char* cell, int64_t inputs, int64_t* sizes, int max_states, int64_t* output_size,
                                 TF_Status* status);

/* Adds the cell's variables below `scope`, with TensorFlow's names ("rnn/lstm_cell/kernel" for the scope "rnn"), in the
 * order in which the composites take the parameters; returns how many there are. The same `seed` gives the same initial
 * values; 0: new ones each time. Places with a null operation are for what the caller has: behind the kernel of an
 * AttentionWrapper's keys, the three results of the composite AttentionMemory. */
TF_CAPI_EXPORT int MR_AddCellVariables(
    TF_Graph* graph, const char* scope, const char* cell, int64_t inputs, TF_DataType dtype, int64_t seed,
    TF_Output* refs, TF_Output* reads, int max_variables, TF_Status* status);

/* ---- For clients that have scopes of their own ---- */

/* Where nodes are added. Strings may be NULL. */
typedef struct MR_Scope {
  const char* name;       /* their names start with this and '/'; it is used as it is */
  const char* slot_scope; /* likewise for the variables of an optimizer */
  const char* device;
  TF_Operation* const* control_inputs;
  int num_control_inputs;
} MR_Scope;

/* A gradient: dense; or the rows `values` at `indices` of a tensor of shape `dense_shape`; or, all opers NULL, none. */
typedef struct MR_Gradient {
  TF_Output dense, values, indices, dense_shape;
} MR_Gradient;

/* The gradients of the sum of ys with respect to xs. dys: what flows into each y, NULL for ones; an entry may have oper
 * NULL. Nothing flows through `stops`. colocate: gradient operations go where their forward operation is. */
TF_CAPI_EXPORT void MR_AddGradients(
    TF_Graph* graph, const MR_Scope* scope, const TF_Output* ys, int num_ys, const TF_Output* xs, int num_xs,
    const TF_Output* dys, const TF_Output* stops, int num_stops, unsigned char colocate, unsigned char accumulate,
    MR_Gradient* dxs, TF_Status* status);

/* A client's own gradient of an op: given the operation and the gradients of its outputs it fills in those of its
 * inputs (all none at first), adding operations to the graph as usual. It is called on the thread that asks for
 * gradients. `scope`: where the operations belong. */
typedef void (*MR_GradientFn)(void* context, TF_Operation* oper, const char* scope, const MR_Gradient* dys, int num_dys,
                              MR_Gradient* dxs, int num_dxs, TF_Status* status);
/* For all graphs of the process: the gradient of operations whose attribute _gradient_op_type is `name`, or whose op
 * has this name. TF_ALREADY_EXISTS. `function` NULL takes it away. */
TF_CAPI_EXPORT void MR_RegisterGradient(const char* name, MR_GradientFn function, void* context, TF_Status* status);

/* An optimizer and the variables that it keeps in one graph. May be used by one thread at a time. */
typedef struct MR_Optimizer MR_Optimizer;
/* `rule`: see MR_Minimize. `name` names its variables. TF_NOT_FOUND. */
TF_CAPI_EXPORT MR_Optimizer* MR_OptimizerNew(TF_Graph* graph, const char* rule, const char* name, TF_Status* status);
TF_CAPI_EXPORT void MR_OptimizerDelete(MR_Optimizer* optimizer);
/* The first value of slot number `slot`, in the order of the update op's arguments, where it is not the rule's. */
TF_CAPI_EXPORT void MR_OptimizerSetSlotValue(MR_Optimizer* optimizer, int slot, double value, TF_Status* status);
/* Adds one update for each variable that has a gradient. Hyper-parameters are given at every call. The operation that
 * runs them all, and counts global_step (whose oper may be NULL) up, is called `name`, which must be unused. */
TF_CAPI_EXPORT TF_Operation* MR_OptimizerApply(
    MR_Optimizer* optimizer, const MR_Scope* scope, const char* name, const char* const* hyper_names,
    const TF_Output* hyper_values, int num_hyper, unsigned char use_nesterov, unsigned char use_locking,
    const TF_Output* vars, const MR_Gradient* gradients, int num_vars, TF_Output global_step, TF_Status* status);
/* The slot of a variable; oper NULL when there is none yet. */
TF_CAPI_EXPORT TF_Output MR_OptimizerSlot(const MR_Optimizer* optimizer, TF_Output var, int slot);

/* L-BFGS with line search, for who has the vectors: it is told scalars and says what to do with vectors, wherever they
 * lie. Those are a point x, the gradient g there, a direction d, and a basis of 2m+1 vectors: m steps s, m changes of
 * the gradient y (all zero at first), and g. May be used by one thread at a time. */
typedef struct MR_Lbfgs MR_Lbfgs;
typedef struct MR_LbfgsOptions {
  int history; /* m; 10 is usual */
  int max_iterations;
  int max_tries;             /* of one line search */
  double gradient_tolerance; /* done when no |element| of g is larger */
  double loss_tolerance;     /* done when a step gains no more than this, times max(|loss|, 1) */
} MR_LbfgsOptions;
typedef enum MR_LbfgsRequest {
  /* d = sum of coefficients[i] * basis[i]; then as MR_LBFGS_TRY */
  MR_LBFGS_TURN = 0,
  /* tell 2 numbers: the loss at x + step * d, and the gradient there times d */
  MR_LBFGS_TRY = 1,
  /* y[slot] = gradient there - g, s[slot] = step * d, x += step * d, g = gradient there; tell the largest |element| of
   * g, and the products of s[slot], y[slot] and g with each vector of the basis */
  MR_LBFGS_ACCEPT = 2,
  /* x is the answer */
  MR_LBFGS_DONE = 3
} MR_LbfgsRequest;
typedef struct MR_LbfgsMove {
  MR_LbfgsRequest request;
  double step;
  int slot;
  int iterations;
  double loss; /* at x */
  unsigned char converged;
} MR_LbfgsMove;
/* TF_INVALID_ARGUMENT for options that make no sense. */
TF_CAPI_EXPORT MR_Lbfgs* MR_LbfgsNew(const MR_LbfgsOptions* options, TF_Status* status);
TF_CAPI_EXPORT void MR_LbfgsDelete(MR_Lbfgs* lbfgs);
/* What it asked for; first of all the loss, the largest |element| of the gradient, and the gradient times itself.
 * `coefficients` has room for 2m+1 numbers, or is NULL. TF_INVALID_ARGUMENT for another number of values, and for a
 * start that is not finite. */
TF_CAPI_EXPORT void MR_LbfgsTell(MR_Lbfgs* lbfgs, const double* values, int num_values, MR_LbfgsMove* move,
                                 double* coefficients, TF_Status* status);
/* Why it is done, until it is deleted. */
TF_CAPI_EXPORT const char* MR_LbfgsReason(const MR_Lbfgs* lbfgs);

#ifdef __cplusplus
}
#endif

#endif /* MILLRACE_C_API_TRAINING_H_ */
