// SPDX-License-Identifier: Apache-2.0
// String tensors of both forms through every op that takes strings: fed, as constants, and as handles of ops that run
// at once.
//   string_fuzz [-v] [ROUNDS [SEED]]      a round that fails says its seed: string_fuzz -v 1 SEED runs it again
// First all ops with good strings: both forms and all ways must give the same. Then rounds of bad ones: every outcome
// but a crash, a sanitizer's report and an error that blames the library is fine. ROUNDS is that of
// MILLRACE_FUZZ_ROUNDS in the environment, or 20000.
#include "string_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "capi/entry_points.h"
#include "graph_run.h"
#include "op/example.h"
#include "system/system.h"
#include "wire/config.h"

namespace millrace::fuzz {
namespace {

struct Case {
  const OpDef* op;
  OpExample example;
  bool is_whole;  // the example as it stands in the declaration
};

struct Result {
  TF_Code code = TF_OK;
  std::string message;
  std::vector<Strings> outputs;  // of other types: the bytes as one string

  bool Equals(const Result& o) const { return (code == TF_OK) == (o.code == TF_OK) && outputs == o.outputs; }
};

enum class Way { kFed, kConstant, kHandle };
const char* NameOf(Way way) { return way == Way::kFed ? "fed" : way == Way::kConstant ? "constant" : "handle"; }
const char* NameOf(Form form) { return form == Form::kOld ? "1.x" : "2.x"; }

struct CallStatus {
  ~CallStatus() { TF_DeleteStatus(s); }
  operator TF_Status*() { return s; }  // NOLINT
  bool ok() const { return TF_GetCode(s) == TF_OK; }
  TF_Status* s = TF_NewStatus();
};

// ---- Which ops ----

bool HasEffectsOutside(const OpDef& op) {
  wire::GraphDef def;
  def.node.emplace_back().op = op.name;
  return TouchesFiles(def) || op.name == "Abort";
}

bool IsList(const ArgDef& a) { return !a.number_attr.empty() || !a.type_list_attr.empty(); }

// The flat inputs of each argument; empty when they cannot be told apart.
std::vector<ArgRange> RangesOf(const OpDef& op, const OpExample& example) {
  const size_t inputs = example.inputs.size(), args = op.inputs.size();
  const auto lists = static_cast<size_t>(std::count_if(op.inputs.begin(), op.inputs.end(), IsList));
  std::vector<ArgRange> ranges;
  if (lists > 1) {  // attributes say it
    AttrMap attrs = example.attrs;
    std::vector<std::string> unknown;
    if (!CompleteAttrs(op, &attrs, &unknown).ok()) return ranges;
    StatusOr<NodeSignature> signature = ResolveSignature(op, attrs);
    return signature.ok() && signature->input_types.size() == inputs ? signature->input_args : ranges;
  }
  if (lists == 0 ? inputs != args : inputs + 1 < args) return ranges;
  int next = 0;
  for (const ArgDef& a : op.inputs) {
    const int count = IsList(a) ? static_cast<int>(inputs + 1 - args) : 1;
    ranges.push_back({next, next + count});
    next += count;
  }
  return ranges;
}

bool TakesStrings(const AttrDef& attr) {
  return attr.kind == AttrKind::kType && !attr.is_list &&
         (attr.allowed_types.empty() ||
          std::find(attr.allowed_types.begin(), attr.allowed_types.end(), DType::kString) != attr.allowed_types.end());
}

Tensor StringsLike(const Tensor& t) {
  Tensor strings = *Tensor::Make(DType::kString, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    strings.mutable_data<TString>()[i] = i % 3 == 0 ? absl::StrCat(i) : std::string(static_cast<size_t>(20 + i), 's');
  }
  return strings;
}

// The example with strings wherever `attr` is the type. False when no input has that type.
bool WithStrings(const AttrDef& attr, const OpDef& op, OpExample* example) {
  const std::vector<ArgRange> ranges = RangesOf(op, *example);
  bool any = false;
  for (size_t a = 0; a < ranges.size(); ++a) {
    if (op.inputs[a].type_attr != attr.name || op.inputs[a].is_ref) continue;
    for (int i = ranges[a].begin; i < ranges[a].end; ++i) {
      Tensor& input = example->inputs[static_cast<size_t>(i)];
      input = StringsLike(input);
      any = true;
    }
  }
  if (any && example->attrs.count(attr.name) > 0) example->attrs[attr.name] = DType::kString;
  return any;
}

bool CanBeMade(const OpExample& example) {
  return std::all_of(example.inputs.begin(), example.inputs.end(), [](const Tensor& t) {
    return IsPlain(t.dtype()) || t.dtype() == DType::kString;
  });
}

// Scalars for an op that has no example. False where it takes other things than numbers and strings.
bool MakeScalars(const OpDef& op, OpExample* made) {
  bool strings = false;
  for (const ArgDef& arg : op.inputs) {
    const DType type = arg.type_attr.empty() ? arg.type : DType::kFloat;
    if (IsList(arg) || arg.is_ref || !(IsPlain(type) || type == DType::kString)) return false;
    made->inputs.push_back(*Tensor::Make(type, Shape()));
    made->differentiate.push_back(false);
    if (IsPlain(type)) std::memset(made->inputs.back().mutable_raw(), 0, DTypeSize(type));
    strings = strings || type == DType::kString;
  }
  for (const AttrDef& attr : op.attrs) {
    if (!attr.has_default && attr.kind == AttrKind::kType) made->attrs[attr.name] = DType::kFloat;
    if (!attr.has_default && attr.kind == AttrKind::kInt) made->attrs[attr.name] = attr.minimum;
  }
  return strings;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const OpDef* op : System::Default().ops().All()) {
    if (HasEffectsOutside(*op)) continue;
    OpExample scalars;
    if (op->examples.empty() && MakeScalars(*op, &scalars)) cases.push_back({op, std::move(scalars), false});
    for (const std::string& text : op->examples) {
      const StatusOr<OpExample> example = ParseExample(*op, text);
      if (!example.ok() || !CanBeMade(*example)) continue;
      if (RangesOf(*op, *example).size() != op->inputs.size()) continue;
      const bool strings = std::any_of(
          example->inputs.begin(), example->inputs.end(), [](const Tensor& t) { return t.dtype() == DType::kString; });
      if (strings) cases.push_back({op, *example, true});
      for (const AttrDef& attr : op->attrs) {
        OpExample made = *example;
        if (TakesStrings(attr) && WithStrings(attr, *op, &made)) cases.push_back({op, std::move(made), false});
      }
    }
  }
  return cases;
}

// ---- Tensors ----

struct Maker {
  Form form;
  bool spoil;
  Random* random;

  std::string Changed(std::string s) const {
    switch (Below(*random, 6)) {
      case 0: return std::string();
      case 1: return std::string(Below(*random, 3000), static_cast<char>(Below(*random, 256)));
      case 2:
      case 3:
        for (size_t i = 1 + Below(*random, 3); i > 0 && !s.empty(); --i) {
          s[Below(*random, s.size())] = static_cast<char>(Below(*random, 256));
        }
        return s;
      case 4: return s.substr(0, Below(*random, s.size() + 1));
      default: return s;
    }
  }

  TF_Tensor* operator()(const Tensor& t) const {
    std::vector<int64_t> dims;
    for (int i = 0; i < t.rank(); ++i) dims.push_back(t.dim(i));
    if (t.dtype() != DType::kString) {
      TF_Tensor* const made =
          TF_AllocateTensor(static_cast<TF_DataType>(t.dtype()), dims.data(), t.rank(), t.TotalBytes());
      if (made != nullptr && t.TotalBytes() > 0) std::memcpy(TF_TensorData(made), t.raw(), t.TotalBytes());
      return made;
    }
    Strings strings;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      strings.push_back(
          spoil && Below(*random, 3) == 0 ? Changed(t.data<TString>()[i].str()) : t.data<TString>()[i].str());
    }
    TF_Tensor* made = MakeStrings(form, dims, strings, spoil && Below(*random, 2), *random);
    if (made == nullptr || !spoil) return made;
    if (Below(*random, 8) == 0) {
      const int64_t n = TF_TensorElementCount(made);
      TF_SetShape(made, &n, 1);
    }
    // Whoever spoiled elements of 2.x must not read them; the library may be asked for them in the form of 1.x.
    if (Below(*random, 8) == 0)
      ReadStrings(form == Form::kOld && Below(*random, 2) ? Form::kNew : Form::kOld, made, &strings);
    if (Below(*random, 8) == 0) {
      TF_Tensor* const moved = TF_TensorMaybeMove(made);
      if (moved != nullptr) made = moved;
    }
    return made;
  }
};

// Reads an output in both forms, which must say the same, and deletes it.
void Take(TF_Tensor* t, Result* result) {
  Strings read;
  if (TF_TensorType(t) == TF_STRING) {
    Strings other;
    const bool good = ReadStrings(Form::kNew, t, &read) && ReadStrings(Form::kOld, t, &other) && read == other;
    if (!good) result->code = TF_INTERNAL, result->message = "the two forms of an output are not the same";
  } else if (TF_TensorData(t) != nullptr) {
    read.emplace_back(static_cast<const char*>(TF_TensorData(t)), TF_TensorByteSize(t));
  }
  result->outputs.push_back(std::move(read));
  TF_DeleteTensor(t);
}

Result Failed(TF_Status* s) { return {TF_GetCode(s), TF_Message(s), {}}; }
Result Refused() { return {TF_INVALID_ARGUMENT, "no tensor was made", {}}; }

// ---- Running ----

template <typename Add>
void ForEachArg(const Case& c, Add&& add) {
  const std::vector<ArgRange> ranges = RangesOf(*c.op, c.example);
  for (size_t a = 0; a < ranges.size(); ++a) add(c.op->inputs[a], ranges[a].begin, ranges[a].end - ranges[a].begin);
}

void SetAttrs(const AttrMap& attrs, const std::function<void(const char*, const std::string&)>& set) {
  for (const auto& [name, value] : attrs) {
    const StatusOr<wire::AttrValue> proto = AttrToProto(value);
    if (proto.ok()) set(name.c_str(), wire::Encode(*proto));
  }
}

class GraphRun {
 public:
  GraphRun() : graph_(TF_NewGraph()) {}
  ~GraphRun() {
    for (TF_Tensor* t : values_) TF_DeleteTensor(t);
    if (session_ != nullptr) TF_DeleteSession(session_, status_);
    TF_DeleteGraph(graph_);
  }
  GraphRun(const GraphRun&) = delete;
  GraphRun& operator=(const GraphRun&) = delete;

  Result Run(const Case& c, Way way, const Maker& make) {
    std::vector<TF_Output> inputs;
    for (const Tensor& t : c.example.inputs) {
      TF_Tensor* const value = make(t);
      if (value == nullptr) return Refused();
      const bool fed = way == Way::kFed && t.dtype() == DType::kString;
      const TF_Output input = fed ? Fed(value) : Constant(value);
      if (input.oper == nullptr) return Failed(status_);
      inputs.push_back(input);
    }
    TF_OperationDescription* const d = TF_NewOperation(graph_, c.op->name.c_str(), "op");
    ForEachArg(c, [&](const ArgDef& arg, int begin, int count) {
      if (IsList(arg)) return TF_AddInputList(d, inputs.data() + begin, count);
      TF_AddInput(d, inputs[static_cast<size_t>(begin)]);
    });
    SetAttrs(c.example.attrs, [&](const char* name, const std::string& value) {
      TF_SetAttrValueProto(d, name, value.data(), value.size(), status_);
    });
    TF_Operation* const op = TF_FinishOperation(d, status_);
    if (op == nullptr) return Failed(status_);
    return Step(op);
  }

 private:
  TF_Output Fed(TF_Tensor* value) {
    TF_OperationDescription* const d = TF_NewOperation(graph_, "Placeholder", NextName().c_str());
    TF_SetAttrType(d, "dtype", TF_TensorType(value));
    const TF_Output output = {TF_FinishOperation(d, status_), 0};
    feeds_.push_back(output);
    values_.push_back(value);
    return output;
  }

  TF_Output Constant(TF_Tensor* value) {
    TF_OperationDescription* const d = TF_NewOperation(graph_, "Const", NextName().c_str());
    TF_SetAttrType(d, "dtype", TF_TensorType(value));
    TF_SetAttrTensor(d, "value", value, status_);
    const bool good = status_.ok();
    TF_DeleteTensor(value);
    CallStatus ignored;
    TF_Operation* const op = TF_FinishOperation(d, good ? status_ : ignored);
    return {op, 0};
  }

  Result Step(TF_Operation* op) {
    session_ = TF_NewSession(graph_, nullptr, status_);
    if (session_ == nullptr) return Failed(status_);
    wire::RunOptions options;
    options.timeout_in_ms = 1000;
    const std::string encoded = wire::Encode(options);
    TF_Buffer* const run_options = TF_NewBufferFromString(encoded.data(), encoded.size());
    std::vector<TF_Output> fetches;
    for (int i = 0; i < TF_OperationNumOutputs(op); ++i) fetches.push_back({op, i});
    std::vector<TF_Tensor*> out(fetches.size());
    TF_SessionRun(session_, run_options, feeds_.data(), values_.data(), static_cast<int>(feeds_.size()), fetches.data(),
                  out.data(), static_cast<int>(out.size()), &op, 1, nullptr, status_);
    TF_DeleteBuffer(run_options);
    if (!status_.ok()) return Failed(status_);
    for (TF_Tensor* t : values_) TF_DeleteTensor(t);  // what shares their memory must hold it
    values_.clear();
    Result result;
    for (TF_Tensor* t : out) Take(t, &result);
    return result;
  }

  std::string NextName() { return absl::StrCat("in", names_++); }

  CallStatus status_;
  TF_Graph* graph_;
  TF_Session* session_ = nullptr;
  std::vector<TF_Output> feeds_;
  std::vector<TF_Tensor*> values_;
  int names_ = 0;
};

// Ops that run at once, in a context that is renewed now and then: it keeps what it has compiled.
class EagerRun {
 public:
  ~EagerRun() { TFE_DeleteContext(context_); }
  Result Run(const Case& c, const Maker& make) {
    if (uses_++ % 256 == 0) Renew();
    CallStatus status;
    TFE_Op* const op = TFE_NewOp(context_, c.op->name.c_str(), status);
    if (op == nullptr) return Failed(status);
    std::vector<TFE_TensorHandle*> handles;
    const auto clean = [&](Result result) {
      for (TFE_TensorHandle* h : handles) TFE_DeleteTensorHandle(h);
      TFE_DeleteOp(op);
      return result;
    };
    for (const Tensor& t : c.example.inputs) {
      TF_Tensor* const value = make(t);
      if (value == nullptr) return clean(Refused());
      TFE_TensorHandle* const h = TFE_NewTensorHandle(value, status);
      TF_DeleteTensor(value);
      if (h == nullptr) return clean(Failed(status));
      handles.push_back(h);
    }
    ForEachArg(c, [&](const ArgDef& arg, int begin, int count) {
      if (IsList(arg)) return TFE_OpAddInputList(op, handles.data() + begin, count, status);
      TFE_OpAddInput(op, handles[static_cast<size_t>(begin)], status);
    });
    SetAttrs(c.example.attrs, [&](const char* name, const std::string& value) {
      TFE_OpSetAttrValueProto(op, name, value.data(), value.size(), status);
    });
    TFE_TensorHandle* made[64];
    int count = 64;
    TFE_Execute(op, made, &count, status);
    if (!status.ok()) return clean(Failed(status));
    Result result;
    for (TFE_TensorHandle* h : handles) TFE_DeleteTensorHandle(h);
    handles.clear();
    for (int i = 0; i < count; ++i) {
      TF_Tensor* const t = TFE_TensorHandleResolve(made[i], status);
      TFE_DeleteTensorHandle(made[i]);
      Take(t, &result);
    }
    return clean(std::move(result));
  }

 private:
  void Renew() {
    TFE_DeleteContext(context_);
    TFE_ContextOptions* const options = TFE_NewContextOptions();
    CallStatus status;
    context_ = TFE_NewContext(options, status);
    TFE_DeleteContextOptions(options);
  }
  TFE_Context* context_ = nullptr;
  size_t uses_ = 0;
};

// Strings that stay in a variable, a queue and a table, and are read by a later step.
class StateRun {
 public:
  ~StateRun() { Close(); }

  // What reads gave; of good strings it must be what was written.
  Result Run(const Maker& make, const Tensor& value, Strings* written) {
    if (uses_++ % 64 == 0) Open();
    CallStatus status;
    TF_Tensor* const fed = make(value);
    if (fed == nullptr) return Refused();
    TF_Operation* const writes[] = {insert_, enqueue_, assign_};
    const TF_Output feed = {x_, 0};
    TF_SessionRun(session_, nullptr, &feed, &fed, 1, nullptr, nullptr, 0, writes, 3, nullptr, status);
    if (status.ok()) ReadStrings(make.form, fed, written);
    TF_DeleteTensor(fed);
    if (!status.ok()) {
      Open();  // a part of it may have been done
      return Failed(status);
    }
    const TF_Output reads[] = {{dequeue_, 0}, {read_, 0}, {export_, 0}, {export_, 1}};
    TF_Tensor* out[4] = {};
    TF_SessionRun(session_, nullptr, nullptr, nullptr, 0, reads, out, 4, nullptr, 0, nullptr, status);
    if (!status.ok()) return Failed(status);
    Result result;
    for (TF_Tensor* t : out) Take(t, &result);
    return result;
  }

 private:
  TF_Operation* Op(const char* type, const char* name, std::initializer_list<TF_Operation*> inputs,
                   std::initializer_list<const char*> string_types) {
    TF_OperationDescription* const d = TF_NewOperation(graph_, type, name);
    for (TF_Operation* input : inputs) TF_AddInput(d, {input, 0});
    for (const char* attr : string_types) TF_SetAttrType(d, attr, TF_STRING);
    if (type == absl::string_view("VarHandleOp")) TF_SetAttrShape(d, "shape", nullptr, -1);
    return TF_FinishOperation(d, status_);
  }
  // `list` is an input of several tensors or an attribute of several types.
  TF_Operation* QueueOp(const char* type, const char* list, TF_Operation* queue) {
    TF_OperationDescription* const d = TF_NewOperation(graph_, type, type);
    if (queue != nullptr) TF_AddInput(d, {queue, 0});
    const TF_Output x = {x_, 0};
    const TF_DataType string = TF_STRING;
    if (list == nullptr) {
      TF_AddInputList(d, &x, 1);
    } else {
      TF_SetAttrTypeList(d, list, &string, 1);
    }
    return TF_FinishOperation(d, status_);
  }

  void Open() {
    Close();
    graph_ = TF_NewGraph();
    x_ = Op("Placeholder", "x", {}, {"dtype"});
    TF_Operation* const variable = Op("VarHandleOp", "v", {}, {"dtype"});
    assign_ = Op("AssignVariableOp", "assign", {variable, x_}, {});
    read_ = Op("ReadVariableOp", "read", {variable}, {"dtype"});
    TF_Operation* const queue = QueueOp("FIFOQueueV2", "component_types", nullptr);
    enqueue_ = QueueOp("QueueEnqueueV2", nullptr, queue);
    dequeue_ = QueueOp("QueueDequeueV2", "component_types", queue);
    TF_Operation* const table = Op("MutableHashTableV2", "table", {}, {"key_dtype", "value_dtype"});
    insert_ = Op("LookupTableInsertV2", "insert", {table, x_, x_}, {});
    export_ = Op("LookupTableExportV2", "export", {table}, {"Tkeys", "Tvalues"});
    session_ = TF_NewSession(graph_, nullptr, status_);
  }
  void Close() {
    if (session_ != nullptr) TF_DeleteSession(session_, status_);
    TF_DeleteGraph(graph_);
    session_ = nullptr, graph_ = nullptr;
  }

  CallStatus status_;
  TF_Graph* graph_ = nullptr;
  TF_Session* session_ = nullptr;
  TF_Operation *x_, *assign_, *read_, *enqueue_, *dequeue_, *insert_, *export_;
  size_t uses_ = 0;
};

Result RunOne(const Case& c, Way way, const Maker& make, EagerRun& eager) {
  if (way == Way::kHandle) return eager.Run(c, make);
  GraphRun run;
  return run.Run(c, way, make);
}

// Not by random numbers, state, or (a summary) the name of its node.
bool GivesTheSameAgain(const OpDef& op) { return !op.stateful && op.name != "TensorSummary"; }

bool BlamesTheLibrary(const Result& r) { return r.code == TF_INTERNAL || r.code == TF_UNKNOWN; }

int Complain(absl::string_view what, const Case& c, Way way, Form form, const Result& r) {
  std::cerr << what << ": " << c.op->name << ", " << NameOf(way) << ", strings of " << NameOf(form) << ": code "
            << r.code << " " << r.message << std::endl;
  return 1;
}

int RunGoodStrings(const std::vector<Case>& cases, EagerRun& eager) {
  int failures = 0;
  std::set<std::string> ran;
  Random random(1);
  for (const Case& c : cases) {
    const Result want = RunOne(c, Way::kFed, {Form::kNew, false, &random}, eager);
    if (want.code == TF_OK) ran.insert(c.op->name);
    if (BlamesTheLibrary(want)) failures += Complain("blames the library", c, Way::kFed, Form::kNew, want);
    if (want.code != TF_OK && c.is_whole) {
      failures += Complain("an example fails", c, Way::kFed, Form::kNew, want);
    }
    if (!GivesTheSameAgain(*c.op)) continue;
    for (const Way way : {Way::kFed, Way::kConstant, Way::kHandle}) {
      for (const Form form : {Form::kOld, Form::kNew}) {
        const Result got = RunOne(c, way, {form, false, &random}, eager);
        if (!got.Equals(want)) failures += Complain("not as when it is fed in the form of 2.x", c, way, form, got);
      }
    }
  }
  std::cout << ran.size() << " ops take strings; " << cases.size() << " cases" << std::endl;
  return failures + (ran.size() < 100 ? 1 : 0);
}

int RunBadStrings(const std::vector<Case>& cases, unsigned seed, bool verbose, EagerRun& eager, size_t* accepted) {
  Random random(seed + 1);
  for (int i = 0; i < 8; ++i) random();
  const Case& c = cases[Below(random, cases.size())];
  const Form form = Below(random, 2) ? Form::kOld : Form::kNew;
  Way way = static_cast<Way>(Below(random, 3));
  // What waits for others ends with its deadline only in a step that has one.
  if (way == Way::kHandle && c.op->stateful) way = Way::kFed;
  if (verbose) std::cerr << seed << " " << c.op->name << " " << NameOf(way) << " " << NameOf(form) << std::endl;
  const Result got = RunOne(c, way, {form, true, &random}, eager);
  if (got.code == TF_OK) ++*accepted;
  if (verbose) std::cerr << "  " << got.code << " " << got.message << std::endl;
  return BlamesTheLibrary(got) ? Complain(absl::StrCat("seed ", seed), c, way, form, got) : 0;
}

int RunState(unsigned seed, bool spoil, StateRun& state) {
  Random random(seed + 1);
  for (int i = 0; i < 8; ++i) random();
  Tensor value = *Tensor::Make(DType::kString, *Shape::Make({static_cast<int64_t>(Below(random, 5))}));
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    value.mutable_data<TString>()[i] = std::string(Below(random, 60), static_cast<char>('a' + i));
  }
  Strings written;
  const Form form = Below(random, 2) ? Form::kOld : Form::kNew;
  const Result got = state.Run({form, spoil, &random}, value, &written);
  const bool kept = got.code != TF_OK || (got.outputs[0] == written && got.outputs[1] == written);
  if (kept && !BlamesTheLibrary(got) && (spoil || got.code == TF_OK)) return 0;
  std::cerr << "seed " << seed << ": strings that a variable and a queue keep, of " << NameOf(form) << ": code "
            << got.code << " " << got.message << std::endl;
  return 1;
}

int Main(unsigned rounds, unsigned seed, bool verbose, bool replay) {
  const std::vector<Case> cases = AllCases();
  EagerRun eager;
  int failures = replay ? 0 : RunGoodStrings(cases, eager);
  StateRun state;
  size_t accepted = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    failures += RunBadStrings(cases, seed + i, verbose, eager, &accepted);
    if (i % 8 == 0 || replay) failures += RunState(seed + i, (seed + i) % 16 == 0, state);
  }
  std::cout << rounds << " rounds from seed " << seed << ": " << accepted << " accepted, " << failures << " failures"
            << std::endl;
  // Neither may the fuzz spoil everything nor nothing.
  if (rounds >= 500 && (accepted < rounds / 20 || accepted > rounds - rounds / 20)) return 1;
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace millrace::fuzz

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  const bool verbose = !args.empty() && args[0] == "-v";
  if (verbose) args.erase(args.begin());
  const char* const given = std::getenv("MILLRACE_FUZZ_ROUNDS");
  const std::string rounds = !args.empty() ? args[0] : given != nullptr ? given : "20000";
  millrace::fuzz::LimitMemory();
  return millrace::fuzz::Main(
      static_cast<unsigned>(std::atoi(rounds.c_str())),
      args.size() > 1 ? static_cast<unsigned>(std::atoi(args[1].c_str())) : 1, verbose, args.size() > 1);
}
