/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of Millrace: functions TF_* with the names, meaning and binary interface of TensorFlow's C API, so
 * that a binding written for libtensorflow can load this library instead; functions MR_* for what is ours.
 *
 * Conventions
 *   - Objects are opaque and belong to who made them: each TF_NewX has its TF_DeleteX. Deleting NULL does nothing.
 *   - The last parameter is the status, which every call sets, to TF_OK too. Where a call takes a status, a NULL or
 *     contradictory argument is TF_INVALID_ARGUMENT; where memory runs out, TF_RESOURCE_EXHAUSTED. Calls without a
 * status answer a NULL object with 0, NULL or -1. No call throws, exits or aborts.
 *   - Messages of the file formats (GraphDef, ConfigProto, ...) cross as their encoded bytes.
 *   - A graph may be used by several threads at once, and so may a session. A tensor, status, buffer, options object or
 *     operation description may not.
 *   - Order of life: options, graph, session. A session keeps its graph alive; operations live as long as the graph.
 */
#ifndef MILLRACE_C_API_H_
#define MILLRACE_C_API_H_

#include "millrace/c_api_control_flow.h"
#include "millrace/c_api_devices.h"
#include "millrace/c_api_files.h"
#include "millrace/c_api_graph.h"
#include "millrace/c_api_io.h"
#include "millrace/c_api_kernels.h"
#include "millrace/c_api_ops.h"
#include "millrace/c_api_session.h"
#include "millrace/c_api_table.h"
#include "millrace/c_api_tensor.h"
#include "millrace/c_api_training.h"

#endif /* MILLRACE_C_API_H_ */
