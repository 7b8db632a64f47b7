/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions, what the library contains, plugins, servers, logging. See c_api.h for the conventions.
 */
#ifndef MILLRACE_C_API_SESSION_H_
#define MILLRACE_C_API_SESSION_H_

#include "millrace/c_api_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TF_SessionOptions TF_SessionOptions;
typedef struct TF_Session TF_Session;
typedef struct TF_DeprecatedSession TF_DeprecatedSession;
typedef struct TF_DeviceList TF_DeviceList;
typedef struct TF_Library TF_Library;
typedef struct TF_ApiDefMap TF_ApiDefMap;
typedef struct TF_Server TF_Server;

/* ---- Options ---- */

TF_CAPI_EXPORT TF_SessionOptions* TF_NewSessionOptions(void);
/* "" or "local": this process. */
TF_CAPI_EXPORT void TF_SetTarget(TF_SessionOptions* options, const char* target);
/* `proto` is an encoded ConfigProto. */
TF_CAPI_EXPORT void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteSessionOptions(TF_SessionOptions* options);

/* ---- Sessions ---- */

/* Sessions made with these options run each step on one thread; among nodes that are ready the order is drawn from
 * `order_seed` (0: construction order). The same seed gives the same schedule: for tests, and to replay a failure. A
 * ConfigProto says the same by its fields `ordered` (1000) and `order_seed` (1001). */
TF_CAPI_EXPORT void MR_SetDeterministic(TF_SessionOptions* options, uint64_t order_seed);

/* Runs parts of `graph`, also those added later. `opts` may be NULL. */
TF_CAPI_EXPORT TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status);
/* Loads the meta graph of a SavedModel directory whose tags are exactly tags[0..tags_len) into `graph` (which must be
 * empty), restores its variables and runs its initialiser. meta_graph_def (may be NULL) gets the encoded MetaGraphDef.
 * TF_NOT_FOUND: no such model or no meta graph with these tags. */
TF_CAPI_EXPORT TF_Session* TF_LoadSessionFromSavedModel(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options, const char* export_dir,
    const char* const* tags, int tags_len, TF_Graph* graph, TF_Buffer* meta_graph_def, TF_Status* status);
/* Cancels what runs; later runs fail with TF_CANCELLED. */
TF_CAPI_EXPORT void TF_CloseSession(TF_Session* session, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteSession(TF_Session* session, TF_Status* status);
/* Nothing to do: a session sees what is added to its graph. */
TF_CAPI_EXPORT void TF_ExtendSession(TF_Session* session, TF_Status* status);

/* One step: feeds inputs[i] with input_values[i], which stay the caller's; fetches outputs[i] into output_values[i],
 * new tensors for the caller to delete (NULL on error); runs the targets. run_options: an encoded RunOptions or NULL.
 * run_metadata: an empty buffer that gets an encoded RunMetadata, or NULL. */
TF_CAPI_EXPORT void TF_SessionRun(
    TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs, TF_Tensor* const* input_values,
    int ninputs, const TF_Output* outputs, TF_Tensor** output_values, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, TF_Buffer* run_metadata, TF_Status* status);
/* A step in several calls: Setup names all feeds, fetches and targets and returns a handle, PRun gives some of the
 * feeds and takes some of the fetches. */
TF_CAPI_EXPORT void TF_SessionPRunSetup(
    TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, const char** handle, TF_Status* status);
TF_CAPI_EXPORT void TF_SessionPRun(
    TF_Session* session, const char* handle, const TF_Output* inputs, TF_Tensor* const* input_values, int ninputs,
    const TF_Output* outputs, TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
    int ntargets, TF_Status* status);
/* Frees the text alone, as in TensorFlow: clients copy it and go on with the step. */
TF_CAPI_EXPORT void TF_DeletePRunHandle(const char* handle);
/* Ends a step that will not be finished, waits for it and frees what it holds; OK when it is over already. A session
 * has at most 1000 such steps open; they end by themselves with their last fetch, with an error, and with the session.
 */
TF_CAPI_EXPORT void MR_ReleasePartialRun(TF_Session* session, const char* handle, TF_Status* status);

/* Where the session's random ops are in their streams, a text: a checkpoint of variables does not hold it. Set in a
 * session of the same graph, it makes the following steps draw the numbers that this session would have drawn, also
 * those of ops without a seed; ops that it does not name stay where they are. To be called between steps. `state` is an
 * empty buffer. */
TF_CAPI_EXPORT void MR_SessionRandomState(TF_Session* session, TF_Buffer* state, TF_Status* status);
TF_CAPI_EXPORT void MR_SetSessionRandomState(TF_Session* session, const void* state, size_t state_len,
                                             TF_Status* status);

/* What the compiler makes of such a step, as a text to be read: its stages with their times, the partitions, where each
 * node lies and why. The step does not run. `text` is an empty buffer. */
TF_CAPI_EXPORT void MR_SessionExplain(
    TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, TF_Buffer* text, TF_Status* status);
/* The same also as a JSON object, in `json`: the stages, what each did, memory with who holds its peak, places with
 * reasons. */
TF_CAPI_EXPORT void MR_SessionExplainBoth(
    TF_Session* session, const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, TF_Buffer* text, TF_Buffer* json, TF_Status* status);

/* Out of range: TF_INVALID_ARGUMENT. Strings live as long as the list. */
TF_CAPI_EXPORT TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status);
TF_CAPI_EXPORT TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession* session, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeviceList(TF_DeviceList* list);
TF_CAPI_EXPORT int TF_DeviceListCount(const TF_DeviceList* list);
TF_CAPI_EXPORT const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status);
TF_CAPI_EXPORT const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status);
TF_CAPI_EXPORT int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status);
TF_CAPI_EXPORT uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status);

/* ---- Sessions that own their graph (the API of TensorFlow 0.x) ---- */

/* The graph grows by TF_ExtendGraph only; feeds and fetches are "name:port" (or "name", port 0), targets names. */
TF_CAPI_EXPORT TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status);
TF_CAPI_EXPORT void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status);
/* Closes the sessions of this process, as TensorFlow does, and drops variables and other state in their named
 * containers (all when ncontainers is 0). */
TF_CAPI_EXPORT void TF_Reset(const TF_SessionOptions* opt, const char** containers, int ncontainers, TF_Status* status);
/* Adds the nodes of an encoded GraphDef; they may read nodes that are there already. */
TF_CAPI_EXPORT void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len,
                                   TF_Status* status);
TF_CAPI_EXPORT void TF_Run(
    TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names, TF_Tensor** inputs,
    int ninputs, const char** output_names, TF_Tensor** outputs, int noutputs, const char** target_oper_names,
    int ntargets, TF_Buffer* run_metadata, TF_Status* status);
TF_CAPI_EXPORT void TF_PRunSetup(
    TF_DeprecatedSession* session, const char** input_names, int ninputs, const char** output_names, int noutputs,
    const char** target_oper_names, int ntargets, const char** handle, TF_Status* status);
TF_CAPI_EXPORT void TF_PRun(TF_DeprecatedSession* session, const char* handle, const char** input_names,
                            TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
                            int noutputs, const char** target_oper_names, int ntargets, TF_Status* status);

/* ---- What the library contains ---- */

/* An encoded OpList of all ops, sorted by name. NULL when memory is exhausted. */
TF_CAPI_EXPORT TF_Buffer* TF_GetAllOpList(void);
/* Encoded KernelLists. */
TF_CAPI_EXPORT TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status);

/* ---- Plugins ---- */

/* Opens a shared library that adds ops and kernels (docs/custom_ops.md): what its static constructors, its
 * TF_InitKernel and its MR_PluginInit (c_api_table.h) register on the calling thread appears all together, or not at
 * all. Loading it again returns another handle of the same library, or the same error. TF_NOT_FOUND: cannot be opened
 * (the message says why). TF_INVALID_ARGUMENT: it adds nothing to this library. TF_FAILED_PRECONDITION: it is made for
 * another version. */
TF_CAPI_EXPORT TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status);
/* The ops that the library added, an encoded OpList that belongs to the handle. */
TF_CAPI_EXPORT TF_Buffer TF_GetOpList(TF_Library* lib_handle);
/* Frees the handle. The library stays loaded. */
TF_CAPI_EXPORT void TF_DeleteLibraryHandle(TF_Library* lib_handle);
/* The same without a handle. */
TF_CAPI_EXPORT void MR_LoadPlugin(const char* path, TF_Status* status);

/* ---- How ops are shown in a language ---- */

/* A map with an ApiDef of each op of an encoded OpList. TF_ApiDefMapPut lays ApiDefs in text form over it (a string may
 * be
 * "<<END", lines, "END"; ops that the map lacks are passed over; arguments that an op lacks are
 * TF_FAILED_PRECONDITION), until the first TF_ApiDefMapGet, which gives an op's encoded ApiDef, or NULL when the map
 * lacks it. */
TF_CAPI_EXPORT TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status);
TF_CAPI_EXPORT void TF_DeleteApiDefMap(TF_ApiDefMap* apimap);
TF_CAPI_EXPORT void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len, TF_Status* status);
TF_CAPI_EXPORT TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len,
                                          TF_Status* status);

/* ---- Servers: a task of a cluster in this process (docs/cluster.md) ---- */

/* `proto` is a ServerDef. Nobody is answered before TF_ServerStart. */
TF_CAPI_EXPORT TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status);
TF_CAPI_EXPORT void TF_ServerStart(TF_Server* server, TF_Status* status);
/* Ends what runs, and drops the state of the task. */
TF_CAPI_EXPORT void TF_ServerStop(TF_Server* server, TF_Status* status);
/* Returns when the server is stopped; at once if it was not started. */
TF_CAPI_EXPORT void TF_ServerJoin(TF_Server* server, TF_Status* status);
/* "grpc://host:port", for TF_SetTarget; lives as long as the server. */
TF_CAPI_EXPORT const char* TF_ServerTarget(TF_Server* server);
/* Stops it first. */
TF_CAPI_EXPORT void TF_DeleteServer(TF_Server* server);
/* What a server tells of itself, one JSON object: tasks, steps, bytes, who waits (docs/cluster.md). */
TF_CAPI_EXPORT void MR_ServerStatus(TF_Server* server, TF_Buffer* json, TF_Status* status);
/* The same of the server at "grpc://host:port". */
TF_CAPI_EXPORT void MR_TargetStatus(const char* target, int64_t timeout_ms, TF_Buffer* json, TF_Status* status);
/* For people: which steps are under way on this server, and what each waits for. FailedPrecondition once stopped. */
TF_CAPI_EXPORT void MR_ServerSteps(TF_Server* server, TF_Buffer* text, TF_Status* status);
/* Loads a shared library whose TF_InitPlugin adds file systems
 * (tensorflow/c/experimental/filesystem/filesystem_interface.h); what it has beside them is added too. Errors are those
 * of TF_LoadLibrary; TF_ALREADY_EXISTS: a scheme is taken. */
TF_CAPI_EXPORT void TF_RegisterFilesystemPlugin(const char* plugin_filename, TF_Status* status);

/* ---- Settings ---- */

/* The settings that the library takes from the environment (MILLRACE_NUM_THREADS, ...), a line each: name, kind
 * (switch, number, seconds, choice, text), values, least and greatest number, default, meaning, with tabs between them.
 */
TF_CAPI_EXPORT void MR_SettingsTable(TF_Buffer* table, TF_Status* status);

/* ---- Logging ---- */

/* `listener` gets every log line instead of stderr; NULL restores that. It may be called on any thread. */
TF_CAPI_EXPORT void TF_RegisterLogListener(void (*listener)(const char*));

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_SESSION_H_ */
