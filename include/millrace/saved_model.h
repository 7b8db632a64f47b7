// SPDX-License-Identifier: Apache-2.0
// SavedModel directories: a graph with its variables, assets and signatures.
//
//   millrace::SaveModel(session, graph, "model", {{"serving_default", {.inputs = {{"x", x}}, .outputs = {{"y", y}}}}});
//   auto model = millrace::SavedModel::Load("model");
//   auto y = model.Run("serving_default", {{"x", value}}).at("y");
#pragma once

#include "millrace/saver.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// What a model can be asked: tensors by names of their own.
struct Signature {
  // What must be fed, by the names that callers use.
  std::map<std::string, Output> inputs = {};
  // What is answered.
  std::map<std::string, Output> outputs = {};
  // What kind of question it is, for servers.
  std::string method_name = "tensorflow/serving/predict";
};

// What SaveModel writes besides the graph, the variables and the signatures.
struct SavedModelOptions {
  // By which Load finds the graph.
  std::vector<std::string> tags = {"serve"};
  Operation main_op = {};                     // runs when the model has been loaded: tables are filled there
  std::map<std::string, Output> assets = {};  // files that are copied, and the string tensors that get their new paths
};

namespace internal {

inline std::string EncodeTensorInfo(const Graph& graph, Output o) {
  Encoder info;
  info.Text(1, o.name()).Int(2, static_cast<int>(o.dtype()) % 100);
  Encoder shape;
  Shape dims;
  if (graph.ShapeOf(o, &dims)) {
    for (const int64_t d : dims) shape.Message(2, Encoder().Int(1, d));
  } else {
    shape.Int(3, 1);
  }
  return info.Message(3, shape).bytes();
}
inline std::string EncodeSignature(const Graph& graph, const Signature& signature) {
  Encoder e;
  for (const auto& [name, o] : signature.inputs)
    e.Message(1, Encoder().Text(1, name).Message(2, EncodeTensorInfo(graph, o)));
  for (const auto& [name, o] : signature.outputs)
    e.Message(2, Encoder().Text(1, name).Message(2, EncodeTensorInfo(graph, o)));
  return e.Text(3, signature.method_name).bytes();
}
// The variables as TensorFlow's programs find them in a meta graph.
inline std::string EncodeVariables(const Graph& graph, const std::vector<Variable>& variables) {
  Encoder list;
  for (const Variable& v : variables) {
    const std::string name = v.name();
    list.Message(
        1, Encoder()
               .Text(1, v.ref.name())
               .Text(2, graph.Find(name + "/Assign") ? name + "/Assign" : "")
               .Text(3, v.read.name())
               .Int(5, Operation(v.ref.get().oper).type() == "VarHandleOp"));
  }
  return Encoder().Text(1, "variables").Message(2, Encoder().Message(2, list)).bytes();
}

// The tensor "name:port" of a graph; null when there is none.
inline Output FindOutput(const Graph& graph, const std::string& name) {
  const size_t colon = name.rfind(':');
  const Operation op = graph.Find(name.substr(0, colon));
  const int index = colon == std::string::npos ? 0 : std::atoi(name.c_str() + colon + 1);
  return op && index >= 0 && index < op.num_outputs() ? op[index] : Output();
}
// Of a map<string, TensorInfo>.
inline void ReadTensorInfo(const Graph& graph, std::string_view entry, std::map<std::string, Output>* into) {
  std::string key;
  Output tensor;
  for (Decoder d(entry); d.Next();) {
    if (d.field() == 1) key = d.text();
    if (d.field() != 2) continue;
    for (Decoder info(d.bytes()); info.Next();) {
      if (info.field() == 1) tensor = FindOutput(graph, info.text());
    }
  }
  (*into)[key] = tensor;
}
inline std::map<std::string, Signature> ReadSignatures(const Graph& graph, std::string_view meta_graph) {
  std::map<std::string, Signature> all;
  for (Decoder meta(meta_graph); meta.Next();) {
    if (meta.field() != 5) continue;  // signature_def
    std::string key;
    Signature signature;
    for (Decoder entry(meta.bytes()); entry.Next();) {
      if (entry.field() == 1) key = entry.text();
      if (entry.field() != 2) continue;
      for (Decoder d(entry.bytes()); d.Next();) {
        if (d.field() == 1) ReadTensorInfo(graph, d.bytes(), &signature.inputs);
        if (d.field() == 2) ReadTensorInfo(graph, d.bytes(), &signature.outputs);
        if (d.field() == 3) signature.method_name = d.text();
      }
    }
    if (key != "__saved_model_init_op") all[key] = std::move(signature);
  }
  return all;
}

// Whether a folder is there and not empty.
inline Status HoldsSomething(const std::string& directory, bool* it_does) {
  std::string pattern;
  for (const char c : directory) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern.push_back('\\');
    pattern.push_back(c);
  }
  CallStatus status;
  TF_Buffer* paths = Api().NewBuffer();
  Api().MatchFiles((pattern + "/*").c_str(), paths, status);
  *it_does = paths->length > 0;
  Api().DeleteBuffer(paths);
  return status.Get();
}

inline Status CopyFile(const std::string& from, const std::string& to) {
  CallStatus status;
  Api().CopyFile(from.c_str(), to.c_str(), 0, status);
  return status.Get();
}

inline Status CreateDirs(const std::string& directory) {
  CallStatus status;
  Api().CreateDirs(directory.c_str(), status);
  return status.Get();
}

inline Status WriteModel(const Session& session, Graph& graph, const std::string& directory,
                         const std::map<std::string, Signature>& signatures, const SavedModelOptions& options,
                         const std::string& saver_def, const std::string& graph_def) {
  const Status made = CreateDirs(directory + "/variables");
  if (!made.ok()) return made;
  Encoder meta, info;
  for (const std::string& tag : options.tags) info.Message(4, tag);
  meta.Message(1, info).Message(2, graph_def);
  if (!saver_def.empty()) {
    std::string filename, save;
    for (Decoder d(saver_def); d.Next();) {
      if (d.field() == 1) filename = d.text();
      if (d.field() == 2) save = d.text();
    }
    std::vector<Tensor> path;
    const Status saved = session.TryRun(
        {{FindOutput(graph, filename), Tensor(directory + "/variables/variables")}}, {FindOutput(graph, save)}, {},
        &path);
    if (!saved.ok()) return saved;
    meta.Message(3, saver_def).Message(4, EncodeVariables(graph, GlobalVariables(graph)));
  }
  if (options.main_op) {
    const Encoder nodes = Encoder().Message(1, Encoder().Text(1, options.main_op.name()));
    meta.Message(4, Encoder().Text(1, "saved_model_main_op").Message(2, nodes));
  }
  Encoder asset_list;
  std::vector<std::string> assets;
  for (const auto& [file, tensor] : options.assets) {
    const std::string name = file.substr(file.rfind('/') + 1);
    const Status folder = CreateDirs(directory + "/assets");
    if (!folder.ok()) return folder;
    const Status copied = CopyFile(file, directory + "/assets/" + name);  // two of one name: the second fails
    if (!copied.ok()) return Status(TF_NOT_FOUND, "cannot copy asset " + file + ": " + copied.message());
    assets.push_back(Encoder().Message(1, EncodeTensorInfo(graph, tensor)).Text(2, name).bytes());
    asset_list.Message(1, Encoder().Text(1, "type.googleapis.com/tensorflow.AssetFileDef").Message(2, assets.back()));
  }
  if (!assets.empty()) {
    meta.Message(4, Encoder().Text(1, "saved_model_assets").Message(2, Encoder().Message(5, asset_list)));
  }
  for (const auto& [name, signature] : signatures) {
    meta.Message(5, Encoder().Text(1, name).Message(2, EncodeSignature(graph, signature)));
  }
  for (const std::string& asset : assets) meta.Message(6, asset);
  const std::string model = Encoder().Int(1, 1).Message(2, meta).bytes();
  CallStatus status;
  Api().WriteFileAtomically((directory + "/saved_model.pb").c_str(), model.data(), model.size(), status);
  return status.Get();
}

}  // namespace internal

// Writes the graph and the values that its variables have in the session. Adds operations that save to the graph.
// TF_ALREADY_EXISTS: the directory holds something. TF_INVALID_ARGUMENT: a signature or an asset names no tensor.
inline Done SaveModel(const Session& session, Graph& graph, const std::string& directory,
                      const std::map<std::string, Signature>& signatures, const SavedModelOptions& options = {}) {
  bool is_full = false;
  const Status looked = internal::HoldsSomething(directory, &is_full);
  if (!looked.ok()) return internal::Finish(looked);
  if (is_full) return internal::Finish(Status(TF_ALREADY_EXISTS, directory + " holds something already"));
  const auto incomplete = [](const std::map<std::string, Output>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return !t.second; });
  };
  for (const auto& [name, s] : signatures) {
    if (!incomplete(s.inputs) && !incomplete(s.outputs)) continue;
    return internal::Finish(Status(TF_INVALID_ARGUMENT, "signature " + name + " names a tensor that there is not"));
  }
  if (incomplete(options.assets)) return internal::Finish(Status(TF_INVALID_ARGUMENT, "an asset has no tensor"));
  std::string saver_def, graph_def;
#if MILLRACE_EXCEPTIONS
  if (!GlobalVariables(graph).empty()) saver_def = Saver(graph).ToDef();
  graph_def = graph.ToGraphDef();
#else
  if (!GlobalVariables(graph).empty()) {
    Result<std::string> def = Saver(graph).ToDef();
    if (!def.ok()) return def.status();
    saver_def = *std::move(def);
  }
  Result<std::string> nodes = graph.ToGraphDef();
  if (!nodes.ok()) return nodes.status();
  graph_def = *std::move(nodes);
#endif
  return internal::Finish(internal::WriteModel(session, graph, directory, signatures, options, saver_def, graph_def));
}

// A model that was loaded. Copies are the same one.
class SavedModel {
 public:
  SavedModel() = default;  // none
  // The meta graph with exactly these tags; its variables have their values, its main operation has run.
  static Returned<SavedModel> Load(const std::string& directory, const std::vector<std::string>& tags = {"serve"},
                                   const SessionOptions& options = {}) {
    SavedModel model;
    std::string meta;
#if MILLRACE_EXCEPTIONS
    model.session_ = Session::Load(directory, tags, &model.graph_, options, &meta);
#else
    Result<Session> loaded = Session::Load(directory, tags, &model.graph_, options, &meta);
    if (!loaded.ok()) return loaded.status();
    model.session_ = *std::move(loaded);
#endif
    model.signatures_ = internal::ReadSignatures(model.graph_, meta);
    return model;
  }
  // The model's graph; what is added to it can be run, too.
  Graph& graph() { return graph_; }
  // The session that has its variables.
  const Session& session() const { return session_; }
  // By name, "serving_default" mostly.
  const std::map<std::string, Signature>& signatures() const { return signatures_; }

  // What a signature answers. TF_NOT_FOUND: there is none of that name; TF_INVALID_ARGUMENT: it wants other inputs.
  Returned<std::map<std::string, Tensor>> Run(const std::string& signature,
                                              const std::map<std::string, Tensor>& inputs) const {
    std::map<std::string, Tensor> answer;
    const auto found = signatures_.find(signature);
    if (found == signatures_.end()) {
      std::string has;
      for (const auto& [name, s] : signatures_) has += " " + name;
      return internal::Give(Status(TF_NOT_FOUND, "the model has no signature " + signature + "; it has" + has), answer);
    }
    std::vector<Feed> feeds;
    for (const auto& [name, tensor] : found->second.inputs) {
      const auto given = inputs.find(name);
      if (given == inputs.end() || inputs.size() != found->second.inputs.size()) {
        return internal::Give(
            Status(TF_INVALID_ARGUMENT,
                   "signature " + signature + " wants " + std::to_string(found->second.inputs.size()) +
                       " inputs, among them " + name),
            answer);
      }
      feeds.push_back({tensor, given->second});
    }
    Outputs fetches;
    for (const auto& [name, tensor] : found->second.outputs) fetches.push_back(tensor);
    std::vector<Tensor> values;
    const Status s = session_.TryRun(feeds, fetches, {}, &values);
    size_t i = 0;
    for (const auto& [name, tensor] : found->second.outputs) {
      if (s.ok()) answer[name] = values[i++];
    }
    return internal::Give(s, std::move(answer));
  }

 private:
  using Outputs = std::vector<Output>;
  Graph graph_;
  Session session_;
  std::map<std::string, Signature> signatures_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
