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
 * attributes by the TF_AddInput and TF_SetAttr functions; it is consumed. Writes at most max_outputs outputs and returns
 * how many there are (0 on error). */
TF_CAPI_EXPORT int MR_FinishComposite(TF_OperationDescription* desc, TF_Output* outputs, int max_outputs,
                                      TF_Status* status);

/* Adds a variable with nodes name, name/Assign, name/read. The shape of `initial` must be fully known. *ref is what
 * optimizers and assignments take, *read what computations take. */
TF_CAPI_EXPORT void MR_AddVariable(TF_Graph* graph, const char* name, TF_Output initial, TF_Output* ref,
                                   TF_Output* read, TF_Status* status);

/* An operation that gives every variable of the graph its first value. */
TF_CAPI_EXPORT TF_Operation* MR_AddInitializer(TF_Graph* graph, const char* name, TF_Status* status);

/* Adds the gradients of `loss` with respect to the variables `vars` (their refs) and one optimizer update each; returns
 * the operation that does one training step. `optimizer` is GradientDescent, Momentum, Adagrad, Adadelta, Adam, AdaMax,
 * RMSProp, CenteredRMSProp or Ftrl; hyper-parameters that are not given have TensorFlow's defaults. global_step.oper may be
 * NULL; otherwise it is an integer variable that counts the steps. Gradients of embedding look-ups stay sparse.
 * clip_global_norm > 0 scales dense gradients down to that common norm. */
TF_CAPI_EXPORT TF_Operation* MR_Minimize(TF_Graph* graph, const char* optimizer, const char* name,
                                         const char* const* hyper_names, const TF_Output* hyper_values, int num_hyper,
                                         TF_Output loss, const TF_Output* vars, int num_vars, TF_Output global_step,
                                         float clip_global_norm, TF_Status* status);

/* Recurrent cells are named by a text, for the attributes `cell` of the composites RNNCell, StaticRNN, DynamicRNN and so
 * on: "LSTMCell(num_units=128, use_peepholes=true)", "MultiRNNCell(GRUCell(num_units=64), GRUCell(num_units=64))".
 *
 * The widths of the cell's states for inputs of this width; returns how many there are. output_size may be NULL. */
TF_CAPI_EXPORT int MR_CellStates(const char* cell, int64_t inputs, int64_t* sizes, int max_states, int64_t* output_size,
                                 TF_Status* status);

/* Adds the cell's variables below `scope`, with TensorFlow's names ("rnn/lstm_cell/kernel" for the scope "rnn"), in the
 * order in which the composites take the parameters; returns how many there are. The same `seed` gives the same initial
 * values; 0: new ones each time. */
TF_CAPI_EXPORT int MR_AddCellVariables(TF_Graph* graph, const char* scope, const char* cell, int64_t inputs,
                                       TF_DataType dtype, int64_t seed, TF_Output* refs, TF_Output* reads,
                                       int max_variables, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif  /* MILLRACE_C_API_TRAINING_H_ */
