// SPDX-License-Identifier: Apache-2.0
// Records, whole files and scores of checkpoints for clients.
#include "millrace/c_api_files.h"

#include <algorithm>

#include "capi/internal.h"
#include "io/checkpoint_scores.h"
#include "io/glob.h"
#include "io/record.h"

using millrace::CheckpointScores;
using millrace::Env;
using millrace::InvalidArgument;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::FillBuffer;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct MR_RecordWriter {
  std::unique_ptr<millrace::RecordWriter> writer;
};

struct MR_RecordReader {
  std::unique_ptr<millrace::RecordReader> reader;
  std::string record;
};

namespace {

std::string Ended(const std::vector<std::string>& prefixes) {
  std::string text;
  for (const std::string& prefix : prefixes) text.append(prefix).push_back('\0');
  return text;
}

}  // namespace

extern "C" {

MR_RecordWriter* MR_RecordWriterOpen(const char* path, const char* compression, const MR_DeflateOptions* options,
                                     TF_Status* status) {
  return GuardedOr<MR_RecordWriter*>(status, nullptr, [&]() -> StatusOr<MR_RecordWriter*> {
    MR_CAPI_REQUIRE(path);
    MR_CAPI_REQUIRE(compression);
    MR_ASSIGN_OR_RETURN(const millrace::Compression kind, millrace::CompressionFromName(compression));
    millrace::DeflateOptions deflate;
    if (options) deflate = {options->level, options->window_bits, options->mem_level, options->strategy};
    MR_ASSIGN_OR_RETURN(auto writer, millrace::RecordWriter::Open(Env::Default(), path, kind, deflate));
    return new MR_RecordWriter{std::move(writer)};
  });
}

void MR_RecordWriterWrite(MR_RecordWriter* writer, const void* record, size_t size, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    if (size > 0) MR_CAPI_REQUIRE(record);
    return writer->writer->Write({static_cast<const char*>(record), size});
  });
}

void MR_RecordWriterFlush(MR_RecordWriter* writer, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    return writer->writer->Flush();
  });
}

void MR_RecordWriterClose(MR_RecordWriter* writer, TF_Status* status) {
  const std::unique_ptr<MR_RecordWriter> owned(writer);
  Guarded(status, [&]() -> Status { return owned ? owned->writer->Close() : absl::OkStatus(); });
}

MR_RecordReader* MR_RecordReaderOpen(const char* path, const char* compression, TF_Status* status) {
  return GuardedOr<MR_RecordReader*>(status, nullptr, [&]() -> StatusOr<MR_RecordReader*> {
    MR_CAPI_REQUIRE(path);
    MR_CAPI_REQUIRE(compression);
    MR_ASSIGN_OR_RETURN(const millrace::Compression kind, millrace::CompressionFromName(compression));
    MR_ASSIGN_OR_RETURN(auto reader, millrace::RecordReader::Open(Env::Default(), path, kind));
    return new MR_RecordReader{std::move(reader), {}};
  });
}

void MR_RecordReaderDelete(MR_RecordReader* reader) { delete reader; }

unsigned char MR_RecordReaderRead(MR_RecordReader* reader, const void** record, size_t* size, TF_Status* status) {
  return GuardedOr<unsigned char>(status, 0, [&]() -> StatusOr<unsigned char> {
    MR_CAPI_REQUIRE(reader);
    MR_CAPI_REQUIRE(record);
    MR_CAPI_REQUIRE(size);
    MR_ASSIGN_OR_RETURN(const bool there, reader->reader->Read(&reader->record));
    *record = there ? reader->record.data() : nullptr;
    *size = there ? reader->record.size() : 0;
    return there ? 1 : 0;
  });
}

void MR_WriteFileAtomically(const char* path, const void* contents, size_t size, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(path);
    if (size > 0) MR_CAPI_REQUIRE(contents);
    return millrace::WriteFileAtomically(Env::Default(), path, {static_cast<const char*>(contents), size});
  });
}

void MR_NoteCheckpointScore(const char* folder, const char* state_file, const char* prefix, double score, int keep,
                            unsigned char best_is_least, TF_Buffer* forgotten, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(folder);
    MR_CAPI_REQUIRE(state_file);
    MR_CAPI_REQUIRE(prefix);
    if (keep < 1) return InvalidArgument("keep is ", keep, ", want a positive number");
    MR_ASSIGN_OR_RETURN(CheckpointScores scores, CheckpointScores::Read(Env::Default(), folder, state_file));
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> gone,
                        scores.Add(Env::Default(), prefix, score, static_cast<size_t>(keep), best_is_least != 0));
    return forgotten != nullptr ? FillBuffer(forgotten, Ended(gone), "forgotten") : absl::OkStatus();
  });
}

void MR_BestCheckpoints(const char* folder, const char* state_file, int count, unsigned char best_is_least,
                        TF_Buffer* prefixes, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(folder);
    MR_CAPI_REQUIRE(state_file);
    if (count < 0) return InvalidArgument("count is ", count, ", want 0 or more");
    MR_ASSIGN_OR_RETURN(const CheckpointScores scores, CheckpointScores::Read(Env::Default(), folder, state_file));
    return FillBuffer(prefixes, Ended(scores.Best(static_cast<size_t>(count), best_is_least != 0)), "prefixes");
  });
}

void MR_MatchFiles(const char* pattern, TF_Buffer* paths, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(pattern);
    MR_ASSIGN_OR_RETURN(const std::vector<std::string> found, millrace::MatchFiles(Env::Default(), pattern));
    return FillBuffer(paths, Ended(found), "paths");
  });
}

}  // extern "C"
