/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that clients write and read beside graphs: records, whole files and parts of them, scores of checkpoints.
 * Conventions are those of c_api_io.h.
 */
#ifndef MILLRACE_C_API_FILES_H_
#define MILLRACE_C_API_FILES_H_

#include "millrace/c_api_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A TFRecord file. `compression` is "", "ZLIB" or "GZIP". May be used by one thread at a time. */
typedef struct MR_RecordWriter MR_RecordWriter;
/* How zlib compresses, in its own numbers; window_bits beyond 15 make a gzip file. */
typedef struct MR_DeflateOptions {
  int level, window_bits, mem_level, strategy;
} MR_DeflateOptions;
/* Replaces an existing file. options NULL: zlib's defaults. TF_INVALID_ARGUMENT: zlib does not take them. */
TF_CAPI_EXPORT MR_RecordWriter* MR_RecordWriterOpen(const char* path, const char* compression,
                                                    const MR_DeflateOptions* options, TF_Status* status);
TF_CAPI_EXPORT void MR_RecordWriterWrite(MR_RecordWriter* writer, const void* record, size_t size, TF_Status* status);
/* Readers see what was written so far. */
TF_CAPI_EXPORT void MR_RecordWriterFlush(MR_RecordWriter* writer, TF_Status* status);
/* Flushes, closes and deletes. */
TF_CAPI_EXPORT void MR_RecordWriterClose(MR_RecordWriter* writer, TF_Status* status);

typedef struct MR_RecordReader MR_RecordReader;
/* TF_NOT_FOUND: there is no such file. */
TF_CAPI_EXPORT MR_RecordReader* MR_RecordReaderOpen(const char* path, const char* compression, TF_Status* status);
TF_CAPI_EXPORT void MR_RecordReaderDelete(MR_RecordReader* reader);
/* Gives the next record, which lives until the next call, and returns 1; 0 at the end of the file and on error.
 * TF_DATA_LOSS: a checksum does not match, or the file ends within a record. */
TF_CAPI_EXPORT unsigned char MR_RecordReaderRead(MR_RecordReader* reader, const void** record, size_t* size,
                                                 TF_Status* status);

/* Whatever happens meanwhile, the path has the old file or the whole new one; when this returns, the new one is on
 * disk. */
TF_CAPI_EXPORT void MR_WriteFileAtomically(const char* path, const void* contents, size_t size, TF_Status* status);

/* What tensorflow/c/env.h lacks. All of these, and all functions there that take paths, serve files of file systems
 * that libraries add ("scheme://..."); TF_UNIMPLEMENTED: nobody has added the scheme. */

/* For TF_AppendWritableFile and its kin; makes the file where it is not there. */
TF_CAPI_EXPORT struct TF_WritableFileHandle* MR_NewAppendableFile(const char* path, TF_Status* status);
/* Takes the place of what is at `to`. TF_UNIMPLEMENTED: the paths are of two file systems. */
TF_CAPI_EXPORT void MR_RenameFile(const char* from, const char* to, TF_Status* status);
/* TF_ALREADY_EXISTS: there is something at `to`, and overwrite is 0. What fails half-way leaves nothing there. */
TF_CAPI_EXPORT void MR_CopyFile(const char* from, const char* to, unsigned char overwrite, TF_Status* status);
/* With those above it; what is there may be there. */
TF_CAPI_EXPORT void MR_CreateDirs(const char* path, TF_Status* status);

/* The files and folders that match a pattern of *, ?, [a-z], [^a-z] and \ (before what is meant as itself), sorted;
 * each with a NUL at its end. */
TF_CAPI_EXPORT void MR_MatchFiles(const char* pattern, TF_Buffer* paths, TF_Status* status);

/* A file that is read at any place, by several threads if they like. */
typedef struct MR_FileReader MR_FileReader;
TF_CAPI_EXPORT MR_FileReader* MR_FileReaderOpen(const char* path, TF_Status* status);
/* Reads up to `size` bytes from `offset`; the number is smaller only at the end of the file. */
TF_CAPI_EXPORT size_t MR_FileReaderRead(MR_FileReader* reader, uint64_t offset, void* data, size_t size,
                                        TF_Status* status);
/* In bytes, when it was opened. */
TF_CAPI_EXPORT uint64_t MR_FileReaderSize(MR_FileReader* reader);
TF_CAPI_EXPORT void MR_FileReaderDelete(MR_FileReader* reader);

/* How good the checkpoints of a folder are, for who keeps the best: the file <folder>/<state_file>.scores, which all
 * clients share. `state_file` is usually "checkpoint".
 *
 * Notes the score of the checkpoint `prefix` and forgets all but the `keep` best; `forgotten` gets their prefixes, each
 * with a NUL at its end. TF_INVALID_ARGUMENT: the score is not a number. TF_DATA_LOSS: the file holds something else.
 */
TF_CAPI_EXPORT void MR_NoteCheckpointScore(
    const char* folder, const char* state_file, const char* prefix, double score, int keep, unsigned char best_is_least,
    TF_Buffer* forgotten, TF_Status* status);
/* The prefixes with the `count` best scores, the best first and of equals the newer, each with a NUL at its end; none
 * where there is no such file. TF_DATA_LOSS: likewise. */
TF_CAPI_EXPORT void MR_BestCheckpoints(const char* folder, const char* state_file, int count,
                                       unsigned char best_is_least, TF_Buffer* prefixes, TF_Status* status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MILLRACE_C_API_FILES_H_ */
