// SPDX-License-Identifier: Apache-2.0
// Checkpoints and event files for clients.
#include "millrace/c_api_io.h"

#include <cmath>
#include <functional>

#include "capi/internal.h"
#include "client/saver.h"
#include "graph/graph_def.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_state.h"
#include "io/event_file.h"

using millrace::Env;
using millrace::SavedVariable;
using millrace::Saver;
using millrace::SaverOptions;
using millrace::Status;
using millrace::StatusOr;
using millrace::capi::AsNode;
using millrace::capi::CheckArray;
using millrace::capi::CheckOutput;
using millrace::capi::DecodeBytes;
using millrace::capi::FillBuffer;
using millrace::capi::Guarded;
using millrace::capi::GuardedOr;

struct MR_Saver {
  std::unique_ptr<Saver> saver;
};

struct MR_SaverSnapshot {
  Saver::Snapshot snapshot;
};

struct MR_CheckpointReader {
  std::unique_ptr<millrace::CheckpointReader> reader;
  std::vector<std::string> names;
};

struct MR_EventWriter {
  std::unique_ptr<millrace::EventFileWriter> writer;
};

namespace {

SaverOptions KeepingNewest(int max_to_keep) {
  SaverOptions options;
  options.max_to_keep = max_to_keep;
  return options;
}

// A session on another graph uses the ops of the same names there.
Status OnGraphOf(TF_Session& session, MR_Saver& saver, const std::function<Status(Saver&)>& use) {
  if (session.shared.get() == saver.saver->graph().get()) return use(*saver.saver);
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Saver> other, saver.saver->On(session.shared));
  MR_RETURN_IF_ERROR(use(*other));
  saver.saver->GoOnFrom(*other);
  return absl::OkStatus();
}

MR_SaverSnapshot* ReadSnapshot(MR_Saver* saver, TF_Session* session, bool between_steps, TF_Status* status) {
  return GuardedOr<MR_SaverSnapshot*>(status, nullptr, [&]() -> StatusOr<MR_SaverSnapshot*> {
    MR_CAPI_REQUIRE(saver);
    MR_CAPI_REQUIRE(session);
    auto read = std::make_unique<MR_SaverSnapshot>();
    MR_RETURN_IF_ERROR(OnGraphOf(*session, *saver, [&](Saver& s) -> Status {
      MR_ASSIGN_OR_RETURN(read->snapshot, s.Read(*session->session, between_steps));
      return absl::OkStatus();
    }));
    return read.release();
  });
}

}  // namespace

extern "C" {

MR_Saver* MR_SaverCreate(TF_Graph* graph, const TF_Output* variables, const char* const* keys, int num_variables,
                         int max_to_keep, TF_Status* status) {
  return MR_SaverCreateWith(graph, variables, keys, num_variables, max_to_keep, 0, status);
}

MR_Saver* MR_SaverCreateWith(TF_Graph* graph, const TF_Output* variables, const char* const* keys, int num_variables,
                             int max_to_keep, int flags, TF_Status* status) {
  return GuardedOr<MR_Saver*>(status, nullptr, [&]() -> StatusOr<MR_Saver*> {
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(CheckArray(variables, num_variables, "variables"));
    std::vector<SavedVariable> saved;
    for (int i = 0; i < num_variables; ++i) {
      MR_RETURN_IF_ERROR(CheckOutput(variables[i], "variable", i));
      SavedVariable& v = saved.emplace_back();
      v.variable = AsNode(variables[i].oper);
      v.key = keys != nullptr && keys[i] != nullptr ? keys[i] : v.variable->name();
    }
    if ((flags & ~(MR_SAVER_SHARDED | MR_SAVER_RESTORE_SEQUENTIALLY | MR_SAVER_RESHAPE)) != 0) {
      return millrace::InvalidArgument("a saver has no flags ", flags);
    }
    SaverOptions options = KeepingNewest(max_to_keep);
    options.sharded = (flags & MR_SAVER_SHARDED) != 0;
    options.restore_sequentially = (flags & MR_SAVER_RESTORE_SEQUENTIALLY) != 0;
    options.reshape = (flags & MR_SAVER_RESHAPE) != 0;
    MR_ASSIGN_OR_RETURN(
        std::unique_ptr<Saver> saver, Saver::Create(Env::Default(), graph->shared, std::move(saved), options));
    return new MR_Saver{std::move(saver)};
  });
}

MR_Saver* MR_SaverFromDef(TF_Graph* graph, const void* saver_def, size_t size, int max_to_keep, TF_Status* status) {
  return GuardedOr<MR_Saver*>(status, nullptr, [&]() -> StatusOr<MR_Saver*> {
    MR_CAPI_REQUIRE(graph);
    millrace::wire::SaverDef def;
    MR_RETURN_IF_ERROR(DecodeBytes(saver_def, size, "saver_def", &def));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Saver> saver,
                        Saver::FromDef(millrace::Env::Default(), graph->shared, def, KeepingNewest(max_to_keep)));
    return new MR_Saver{std::move(saver)};
  });
}

void MR_SaverDelete(MR_Saver* saver) { delete saver; }

void MR_SaverKeepEvery(MR_Saver* saver, double hours, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(saver);
    return saver->saver->KeepEvery(hours);
  });
}

void MR_SaverSetCheckpoints(MR_Saver* saver, const char* const* prefixes, const double* written, int num_checkpoints,
                            TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(saver);
    MR_RETURN_IF_ERROR(CheckArray(prefixes, num_checkpoints, "prefixes"));
    std::vector<Saver::Checkpoint> list;
    for (int i = 0; i < num_checkpoints; ++i) {
      MR_CAPI_REQUIRE(prefixes[i]);
      const double seconds = written ? written[i] : 0;
      if (!std::isfinite(seconds)) return millrace::InvalidArgument("checkpoint ", i, " was written at ", seconds);
      list.push_back({prefixes[i], written ? absl::UnixEpoch() + absl::Seconds(seconds) : Env::Default().Now()});
    }
    saver->saver->set_checkpoints(std::move(list));
    return absl::OkStatus();
  });
}

void MR_SaverSave(MR_Saver* saver, TF_Session* session, const char* prefix, int64_t global_step,
                  unsigned char write_meta_graph, TF_Buffer* path, TF_Status* status) {
  MR_SaverSaveSnapshot(saver, session, nullptr, prefix, global_step, write_meta_graph, path, status);
}

MR_SaverSnapshot* MR_SaverRead(MR_Saver* saver, TF_Session* session, TF_Status* status) {
  return ReadSnapshot(saver, session, false, status);
}

MR_SaverSnapshot* MR_SaverReadBetweenSteps(MR_Saver* saver, TF_Session* session, TF_Status* status) {
  return ReadSnapshot(saver, session, true, status);
}

void MR_SaverSnapshotDelete(MR_SaverSnapshot* snapshot) { delete snapshot; }

void MR_SaverSaveSnapshot(MR_Saver* saver, TF_Session* session, const MR_SaverSnapshot* snapshot, const char* prefix,
                          int64_t global_step, unsigned char write_meta_graph, TF_Buffer* path, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(saver);
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(prefix);
    std::string written;
    MR_RETURN_IF_ERROR(OnGraphOf(*session, *saver, [&](Saver& s) -> Status {
      MR_ASSIGN_OR_RETURN(written, s.Save(*session->session, prefix, global_step, write_meta_graph != 0,
                                          snapshot != nullptr ? &snapshot->snapshot : nullptr));
      return absl::OkStatus();
    }));
    return path != nullptr ? FillBuffer(path, written, "path") : absl::OkStatus();
  });
}

void MR_SaverRestore(MR_Saver* saver, TF_Session* session, const char* prefix, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(saver);
    MR_CAPI_REQUIRE(session);
    MR_CAPI_REQUIRE(prefix);
    return OnGraphOf(*session, *saver, [&](Saver& s) { return s.Restore(*session->session, prefix); });
  });
}

void MR_SaverToDef(const MR_Saver* saver, TF_Buffer* saver_def, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(saver);
    return FillBuffer(saver_def, millrace::wire::Encode(saver->saver->def()), "saver_def");
  });
}

void MR_LatestCheckpoint(const char* folder, TF_Buffer* prefix, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(folder);
    MR_ASSIGN_OR_RETURN(const std::string latest, millrace::LatestCheckpoint(Env::Default(), folder));
    return FillBuffer(prefix, latest, "prefix");
  });
}

MR_CheckpointReader* MR_CheckpointReaderOpen(const char* prefix, TF_Status* status) {
  return GuardedOr<MR_CheckpointReader*>(status, nullptr, [&]() -> StatusOr<MR_CheckpointReader*> {
    MR_CAPI_REQUIRE(prefix);
    MR_ASSIGN_OR_RETURN(
        std::unique_ptr<millrace::CheckpointReader> reader, millrace::OpenCheckpoint(Env::Default(), prefix));
    std::vector<std::string> names = reader->Names();
    return new MR_CheckpointReader{std::move(reader), std::move(names)};
  });
}

void MR_CheckpointReaderDelete(MR_CheckpointReader* reader) { delete reader; }

int MR_CheckpointReaderNumTensors(const MR_CheckpointReader* reader) {
  return reader != nullptr ? static_cast<int>(reader->names.size()) : 0;
}

const char* MR_CheckpointReaderName(const MR_CheckpointReader* reader, int index) {
  if (reader == nullptr || index < 0 || static_cast<size_t>(index) >= reader->names.size()) return nullptr;
  return reader->names[static_cast<size_t>(index)].c_str();
}

TF_Tensor* MR_CheckpointReaderRead(const MR_CheckpointReader* reader, const char* name, TF_Status* status) {
  return GuardedOr<TF_Tensor*>(status, nullptr, [&]() -> StatusOr<TF_Tensor*> {
    MR_CAPI_REQUIRE(reader);
    MR_CAPI_REQUIRE(name);
    MR_ASSIGN_OR_RETURN(millrace::Tensor value, reader->reader->Read(name));
    return new TF_Tensor{std::move(value)};
  });
}

MR_EventWriter* MR_EventWriterOpen(const char* folder, const char* suffix, TF_Status* status) {
  return GuardedOr<MR_EventWriter*>(status, nullptr, [&]() -> StatusOr<MR_EventWriter*> {
    MR_CAPI_REQUIRE(folder);
    MR_ASSIGN_OR_RETURN(std::unique_ptr<millrace::EventFileWriter> writer,
                        millrace::EventFileWriter::Open(Env::Default(), folder, suffix != nullptr ? suffix : ""));
    return new MR_EventWriter{std::move(writer)};
  });
}

void MR_EventWriterAddSummary(MR_EventWriter* writer, const void* summary, size_t size, int64_t step,
                              TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    millrace::wire::Summary decoded;
    MR_RETURN_IF_ERROR(DecodeBytes(summary, size, "summary", &decoded));
    return writer->writer->WriteSummary(step, std::move(decoded));
  });
}

void MR_EventWriterAddGraph(MR_EventWriter* writer, TF_Graph* graph, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    MR_CAPI_REQUIRE(graph);
    millrace::wire::GraphDef def;
    {
      millrace::GraphLock lock(&graph->shared->mu);
      MR_ASSIGN_OR_RETURN(def, millrace::GraphToProto(graph->shared->graph));
    }
    return writer->writer->WriteGraph(millrace::wire::Encode(def));
  });
}

void MR_EventWriterAddEvent(MR_EventWriter* writer, const void* event, size_t size, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    millrace::wire::Event decoded;
    MR_RETURN_IF_ERROR(DecodeBytes(event, size, "event", &decoded));
    return writer->writer->Write(std::move(decoded));
  });
}

void MR_EventWriterFlush(MR_EventWriter* writer, TF_Status* status) {
  Guarded(status, [&]() -> Status {
    MR_CAPI_REQUIRE(writer);
    return writer->writer->Flush();
  });
}

const char* MR_EventWriterPath(const MR_EventWriter* writer) {
  return writer != nullptr ? writer->writer->path().c_str() : nullptr;
}

void MR_EventWriterClose(MR_EventWriter* writer, TF_Status* status) {
  const std::unique_ptr<MR_EventWriter> owned(writer);
  Guarded(status, [&]() -> Status { return owned ? owned->writer->Close() : absl::OkStatus(); });
}

}  // extern "C"
