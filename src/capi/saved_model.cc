// SPDX-License-Identifier: Apache-2.0
// Loading a SavedModel directory: choose the meta graph by its tags, import it, restore the variables, run the
// initialiser.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/env.h"
#include "base/logging.h"
#include "capi/internal.h"
#include "system/system.h"
#include "wire/meta_graph.h"

namespace millrace::capi {
namespace {

constexpr char kInitOpKey[] = "__saved_model_init_op";

StatusOr<wire::SavedModel> ReadSavedModel(const std::string& dir) {
  Env& env = Env::Default();
  const std::string binary = JoinPath(dir, "saved_model.pb");
  const std::string text = JoinPath(dir, "saved_model.pbtxt");
  wire::SavedModel model;
  if (env.FileExists(binary)) {
    MR_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(binary));
    MR_RETURN_IF_ERROR(Annotate(wire::Decode(bytes, &model), absl::StrCat(binary, ": ")));
  } else if (env.FileExists(text)) {
    MR_ASSIGN_OR_RETURN(const std::string bytes, env.ReadFile(text));
    MR_RETURN_IF_ERROR(Annotate(wire::DecodeText(bytes, &model), absl::StrCat(text, ": ")));
  } else {
    return NotFound("Could not find SavedModel .pb or .pbtxt at supplied export directory path: ", dir);
  }
  return model;
}

StatusOr<wire::MetaGraphDef> ChooseMetaGraph(wire::SavedModel model, const std::string& dir,
                                             const std::set<std::string>& tags) {
  std::string available;
  for (wire::MetaGraphDef& meta : model.meta_graphs) {
    std::set<std::string> has;
    if (meta.meta_info_def) has.insert(meta.meta_info_def->tags.begin(), meta.meta_info_def->tags.end());
    if (has == tags) return std::move(meta);
    absl::StrAppend(&available, " {", absl::StrJoin(has, ","), "}");
  }
  return NotFound("'", dir, "' has no meta graph with the tags {", absl::StrJoin(tags, ","), "}; it has", available);
}

using NamedFeeds = std::vector<std::pair<std::string, std::string>>;  // tensor name, string to feed

StatusOr<NamedFeeds> AssetFeeds(const wire::MetaGraphDef& meta, const std::string& dir) {
  std::vector<wire::AssetFileDef> assets = meta.asset_file_def;
  if (assets.empty()) {
    auto it = meta.collection_def.find(absl::string_view("saved_model_assets"));
    if (it != meta.collection_def.end() && it->second.any_list) {
      for (const wire::Any& any : it->second.any_list->value) {
        MR_RETURN_IF_ERROR(Annotate(wire::Decode(any.value, &assets.emplace_back()), "saved_model_assets: "));
      }
    }
  }
  NamedFeeds feeds;
  for (const wire::AssetFileDef& asset : assets) {
    // The file must be one of the model's own.
    const absl::string_view file = asset.filename;
    if (file.empty() || file[0] == '/' || file.find("..") != absl::string_view::npos) {
      return InvalidArgument("asset '", file, "' does not name a file of the model");
    }
    if (!asset.tensor_info) return InvalidArgument("asset '", file, "' has no tensor");
    feeds.emplace_back(asset.tensor_info->name, JoinPath(JoinPath(dir, "assets"), file));
  }
  return feeds;
}

// The operation that initialises the model; empty when there is none.
StatusOr<std::string> InitOp(const wire::MetaGraphDef& meta) {
  if (auto it = meta.signature_def.find(absl::string_view(kInitOpKey)); it != meta.signature_def.end()) {
    auto output = it->second.outputs.find(absl::string_view(kInitOpKey));
    if (output == it->second.outputs.end()) {
      return InvalidArgument("signature ", kInitOpKey, " has no output of that name");
    }
    MR_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(output->second.name));
    return std::string(name.node);
  }
  for (const char* key : {"saved_model_main_op", "legacy_init_op"}) {
    auto it = meta.collection_def.find(absl::string_view(key));
    if (it == meta.collection_def.end()) continue;
    if (!it->second.node_list || it->second.node_list->value.size() != 1) {
      return FailedPrecondition("collection ", key, " must name exactly one operation");
    }
    return it->second.node_list->value[0];
  }
  return std::string();
}

Status Resolve(const Graph& graph, const NamedFeeds& feeds, const std::string& target, StepArguments* step) {
  for (const auto& [name, text] : feeds) {
    MR_ASSIGN_OR_RETURN(const Output output, FindOutput(graph, name));
    step->feeds.push_back(output);
    step->values.push_back(Tensor::Scalar<TString>(TString(text)));
  }
  MR_ASSIGN_OR_RETURN(Node * node, FindNode(graph, target));
  step->targets.push_back(node);
  return absl::OkStatus();
}

class Loader {
 public:
  Loader(TF_Session& session, const TF_Buffer* run_options) : session_(session), run_options_(run_options) {}

  Status Run(const NamedFeeds& feeds, const std::string& target) {
    StepArguments step;
    {
      millrace::GraphReaderLock lock(&session_.shared->mu);
      MR_RETURN_IF_ERROR(Resolve(session_.shared->graph, feeds, target, &step));
    }
    return RunStep(*session_.session, run_options_, step, nullptr, nullptr);
  }

  Status Restore(const wire::MetaGraphDef& meta, const std::string& dir, NamedFeeds feeds) {
    const std::string prefix = JoinPath(JoinPath(dir, "variables"), "variables");
    if (!meta.saver_def || meta.saver_def->restore_op_name.empty()) return absl::OkStatus();
    if (!Env::Default().FileExists(prefix + ".index") && !Env::Default().FileExists(prefix)) {
      LogInfo("'", dir, "' has no variables to restore");
      return absl::OkStatus();
    }
    feeds.emplace_back(meta.saver_def->filename_tensor_name, prefix);
    return Annotate(Run(feeds, meta.saver_def->restore_op_name), absl::StrCat("restoring '", prefix, "': "));
  }

 private:
  TF_Session& session_;
  const TF_Buffer* run_options_;
};

Status ImportMetaGraph(const wire::MetaGraphDef& meta, SharedGraph& shared) {
  if (!meta.graph_def) return InvalidArgument("the meta graph has no graph");
  millrace::GraphLock lock(&shared.mu);
  if (!shared.graph.nodes().empty()) return InvalidArgument("the graph to load into must be empty");
  return ImportGraphDef(*meta.graph_def, ImportOptions(), &shared.graph).status();
}

StatusOr<TF_Session*> Load(const TF_SessionOptions& options, const TF_Buffer* run_options, const std::string& dir,
                           const std::set<std::string>& tags, TF_Graph& graph, TF_Buffer* meta_graph_def) {
  if (meta_graph_def != nullptr && meta_graph_def->data != nullptr) {
    return InvalidArgument("meta_graph_def must be an empty buffer");
  }
  MR_ASSIGN_OR_RETURN(wire::SavedModel model, ReadSavedModel(dir));
  MR_ASSIGN_OR_RETURN(const wire::MetaGraphDef meta, ChooseMetaGraph(std::move(model), dir, tags));
  MR_RETURN_IF_ERROR(ImportMetaGraph(meta, *graph.shared));
  auto session = std::make_unique<TF_Session>();
  session->shared = graph.shared;
  MR_ASSIGN_OR_RETURN(session->session, System::Default().NewSession(graph.shared, options.config, options.target));
  Loader loader(*session, run_options);
  MR_ASSIGN_OR_RETURN(const NamedFeeds assets, AssetFeeds(meta, dir));
  MR_RETURN_IF_ERROR(loader.Restore(meta, dir, assets));
  MR_ASSIGN_OR_RETURN(const std::string init_op, InitOp(meta));
  if (!init_op.empty()) MR_RETURN_IF_ERROR(Annotate(loader.Run(assets, init_op), "initialising the model: "));
  if (meta_graph_def != nullptr) MR_RETURN_IF_ERROR(FillWithMessage(meta_graph_def, meta, "meta_graph_def"));
  return session.release();
}

}  // namespace
}  // namespace millrace::capi

extern "C" {

TF_Session* TF_LoadSessionFromSavedModel(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options, const char* export_dir,
    const char* const* tags, int tags_len, TF_Graph* graph, TF_Buffer* meta_graph_def, TF_Status* status) {
  using millrace::StatusOr;
  return millrace::capi::GuardedOr<TF_Session*>(status, nullptr, [&]() -> StatusOr<TF_Session*> {
    MR_CAPI_REQUIRE(export_dir);
    MR_CAPI_REQUIRE(graph);
    MR_RETURN_IF_ERROR(millrace::capi::CheckArray(tags, tags_len, "tags"));
    std::set<std::string> wanted;
    for (int i = 0; i < tags_len; ++i) {
      if (tags[i] == nullptr) return millrace::capi::NullArgument("tags");
      wanted.insert(tags[i]);
    }
    const TF_SessionOptions defaults;
    return millrace::capi::Load(
        session_options ? *session_options : defaults, run_options, export_dir, wanted, *graph, meta_graph_def);
  });
}

}  // extern "C"
