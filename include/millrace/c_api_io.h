/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints and event files for clients. Conventions are those of c_api.h: the status comes last, objects are opaque
 * and belong to who made them; deleting NULL does nothing. A TF_Buffer that a call fills must be empty; strings in it
 * have no NUL at the end.
 */
#ifndef MILLRACE_C_API_IO_H_
#define MILLRACE_C_API_IO_H_

#include "millrace/c_api_graph.h"
#include "millrace/c_api_session.h"
#include "millrace/c_api_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Saves and restores variables by ops in the graph that have TensorFlow's names (save/Const, save/SaveV2,
 * save/restore_all, ...). May be used by one thread at a time. */
typedef struct MR_Saver MR_Saver;

/* Adds the ops for `variables` (references or resource handles), saved under `keys`, or under the names of their
 * operations when keys is NULL; num_variables 0 means all variables of the graph. The newest max_to_keep checkpoints
 * are kept; 0 keeps all. */
TF_CAPI_EXPORT MR_Saver* MR_SaverCreate(TF_Graph* graph, const TF_Output* variables, const char* const* keys,
                                        int num_variables, int max_to_keep, TF_Status* status);
/* The same with any of the bits below. */
enum {
  MR_SAVER_SHARDED = 1,              /* a file for each device that variables ask for */
  MR_SAVER_RESTORE_SEQUENTIALLY = 2, /* one variable after the other, which wants less memory */
  MR_SAVER_RESHAPE = 4               /* values take the variables' shapes */
};
TF_CAPI_EXPORT MR_Saver* MR_SaverCreateWith(TF_Graph* graph, const TF_Output* variables, const char* const* keys,
                                            int num_variables, int max_to_keep, int flags, TF_Status* status);
/* Uses the ops that an encoded SaverDef names, for graphs that were imported with theirs. */
TF_CAPI_EXPORT MR_Saver* MR_SaverFromDef(TF_Graph* graph, const void* saver_def, size_t size, int max_to_keep,
                                         TF_Status* status);
TF_CAPI_EXPORT void MR_SaverDelete(MR_Saver* saver);
/* Of the checkpoints that max_to_keep has deleted, one for every `hours` stays for good, counted from now on. Before
 * this is called, what a SaverDef says holds, or 10,000. */
TF_CAPI_EXPORT void MR_SaverKeepEvery(MR_Saver* saver, double hours, TF_Status* status);
/* The saver goes on where another one stopped, as if it had written these, oldest first. written[i]: when that was, in
 * seconds since 1970; NULL: now. */
TF_CAPI_EXPORT void MR_SaverSetCheckpoints(MR_Saver* saver, const char* const* prefixes, const double* written,
                                           int num_checkpoints, TF_Status* status);
/* Writes checkpoint prefix-global_step (global_step < 0: prefix), with the graph beside it in a file .meta unless
 * write_meta_graph is 0, and the state file `checkpoint`. `path`, which may be NULL, gets the prefix written. */
TF_CAPI_EXPORT void MR_SaverSave(MR_Saver* saver, TF_Session* session, const char* prefix, int64_t global_step,
                                 unsigned char write_meta_graph, TF_Buffer* path, TF_Status* status);
/* The values that MR_SaverSave would write, read in one step: they stay as they are while later steps change the
 * variables. TF_FAILED_PRECONDITION: the graph of a SaverDef saves by operations that cannot be fed. */
typedef struct MR_SaverSnapshot MR_SaverSnapshot;
TF_CAPI_EXPORT MR_SaverSnapshot* MR_SaverRead(MR_Saver* saver, TF_Session* session, TF_Status* status);
/* The same while no other step of the session changes a variable: those that run are waited for, those that come wait.
 * TF_FAILED_PRECONDITION too where others may change the variables, on servers or in a partial run that is open;
 * TF_DEADLINE_EXCEEDED when steps that change variables run for more than a minute. */
TF_CAPI_EXPORT MR_SaverSnapshot* MR_SaverReadBetweenSteps(MR_Saver* saver, TF_Session* session, TF_Status* status);
TF_CAPI_EXPORT void MR_SaverSnapshotDelete(MR_SaverSnapshot* snapshot);
/* MR_SaverSave of a snapshot (NULL: of the variables as they are), on any thread, while the session runs steps. The
 * saver itself is still for one thread at a time. */
TF_CAPI_EXPORT void MR_SaverSaveSnapshot(
    MR_Saver* saver, TF_Session* session, const MR_SaverSnapshot* snapshot, const char* prefix, int64_t global_step,
    unsigned char write_meta_graph, TF_Buffer* path, TF_Status* status);
TF_CAPI_EXPORT void MR_SaverRestore(MR_Saver* saver, TF_Session* session, const char* prefix, TF_Status* status);
/* The encoded SaverDef. */
TF_CAPI_EXPORT void MR_SaverToDef(const MR_Saver* saver, TF_Buffer* saver_def, TF_Status* status);

/* The prefix of the newest checkpoint in a folder that its state file names and that is there; TF_NOT_FOUND when none.
 */
TF_CAPI_EXPORT void MR_LatestCheckpoint(const char* folder, TF_Buffer* prefix, TF_Status* status);

/* A checkpoint of format V2 or V1. May be used by several threads. */
typedef struct MR_CheckpointReader MR_CheckpointReader;
TF_CAPI_EXPORT MR_CheckpointReader* MR_CheckpointReaderOpen(const char* prefix, TF_Status* status);
TF_CAPI_EXPORT void MR_CheckpointReaderDelete(MR_CheckpointReader* reader);
TF_CAPI_EXPORT int MR_CheckpointReaderNumTensors(const MR_CheckpointReader* reader);
/* NULL for an index that there is not; otherwise the name lives as long as the reader. Sorted. */
TF_CAPI_EXPORT const char* MR_CheckpointReaderName(const MR_CheckpointReader* reader, int index);
/* TF_NOT_FOUND: no such tensor; TF_DATA_LOSS: the files are damaged. */
TF_CAPI_EXPORT TF_Tensor* MR_CheckpointReaderRead(const MR_CheckpointReader* reader, const char* name,
                                                  TF_Status* status);

/* An event file for TensorBoard. May be used by one thread at a time. */
typedef struct MR_EventWriter MR_EventWriter;

/* Makes a new file in `folder`, which is made where it is missing; its name ends with `suffix` (may be NULL). */
TF_CAPI_EXPORT MR_EventWriter* MR_EventWriterOpen(const char* folder, const char* suffix, TF_Status* status);
/* An encoded Summary, as the summary ops return. */
TF_CAPI_EXPORT void MR_EventWriterAddSummary(MR_EventWriter* writer, const void* summary, size_t size, int64_t step,
                                             TF_Status* status);
TF_CAPI_EXPORT void MR_EventWriterAddGraph(MR_EventWriter* writer, TF_Graph* graph, TF_Status* status);
/* An encoded Event, as it is (a time of 0 becomes now). */
TF_CAPI_EXPORT void MR_EventWriterAddEvent(MR_EventWriter* writer, const void* event, size_t size, TF_Status* status);
TF_CAPI_EXPORT void MR_EventWriterFlush(MR_EventWriter* writer, TF_Status* status);
/* Lives as long as the writer. */
TF_CAPI_EXPORT const char* MR_EventWriterPath(const MR_EventWriter* writer);
/* Flushes, closes and deletes. */
TF_CAPI_EXPORT void MR_EventWriterClose(MR_EventWriter* writer, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_IO_H_ */
