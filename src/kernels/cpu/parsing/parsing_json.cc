// SPDX-License-Identifier: Apache-2.0
// Kernel of DecodeJSONExample: Example messages in protobuf's JSON form to their binary form, in the order of the text.
// Lenient as protobuf's reader is: numbers may be strings, null is nothing.
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "base/json.h"
#include "kernels/cpu/parsing/parsing.h"

namespace millrace {
namespace {

void AppendVarint(uint64_t v, std::string* out) {
  for (; v >= 128; v >>= 7) out->push_back(static_cast<char>(v | 128));
  out->push_back(static_cast<char>(v));
}

void AppendField(int number, absl::string_view bytes, std::string* out) {
  AppendVarint(static_cast<uint64_t>(number) << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out->append(bytes.data(), bytes.size());
}

Status AppendInt64(JsonReader& json, std::string* list) {
  int64_t v = 0;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    if (!absl::SimpleAtoi(text, &v)) {
      double wide = 0;
      const bool number = absl::SimpleAtod(text, &wide) && std::trunc(wide) == wide && std::abs(wide) < 0x1p63;
      if (!number) return json.Fail(absl::StrCat("'", text.substr(0, 80), "' is no int64"));
      v = static_cast<int64_t>(wide);
    }
  }
  list->push_back(8);
  AppendVarint(static_cast<uint64_t>(v), list);
  return absl::OkStatus();
}

Status AppendFloat(JsonReader& json, std::string* list) {
  double v = 0;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    const bool named = quoted && (text == "NaN" || text == "Infinity" || text == "-Infinity");
    const bool number = absl::SimpleAtod(text, &v);
    if (!named && (!number || !(std::abs(v) <= static_cast<double>(std::numeric_limits<float>::max())))) {
      return json.Fail(absl::StrCat("'", text.substr(0, 80), "' is no float"));
    }
  }
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(v));
  list->push_back(13);
  for (int shift = 0; shift < 32; shift += 8) list->push_back(static_cast<char>(bits >> shift));
  return absl::OkStatus();
}

Status AppendBytes(JsonReader& json, std::string* list) {
  std::string bytes;
  if (!json.TakeNull()) {
    bool quoted = false;
    std::string text;
    MR_RETURN_IF_ERROR(json.Scalar(&quoted, &text));
    if (!quoted) return json.Fail("expected a string of base64");
    if (!absl::Base64Unescape(text, &bytes) && !absl::WebSafeBase64Unescape(text, &bytes)) {
      return json.Fail("corrupt base64");
    }
  }
  AppendField(1, bytes, list);
  return absl::OkStatus();
}

using AppendValue = Status (*)(JsonReader&, std::string*);

// One of the lists of a Feature.
Status AppendList(JsonReader& json, int number, AppendValue append, std::string* feature) {
  std::string list;
  const auto member = [&](const std::string& key) -> Status {
    if (key != "value") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    return json.TakeNull() ? absl::OkStatus() : json.Array([&] { return append(json, &list); });
  };
  MR_RETURN_IF_ERROR(json.Object(member));
  AppendField(number, list, feature);
  return absl::OkStatus();
}

Status ReadFeature(JsonReader& json, std::string* feature) {
  bool has_list = false;
  return json.Object([&](const std::string& key) -> Status {
    const bool bytes = key == "bytesList" || key == "bytes_list", floats = key == "floatList" || key == "float_list";
    if (!bytes && !floats && key != "int64List" && key != "int64_list") {
      return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    }
    if (json.TakeNull()) return absl::OkStatus();
    if (has_list) return json.Fail(absl::StrCat("'", key, "' has already been set"));
    has_list = true;
    return bytes    ? AppendList(json, 1, AppendBytes, feature)
           : floats ? AppendList(json, 2, AppendFloat, feature)
                    : AppendList(json, 3, AppendInt64, feature);
  });
}

Status ReadFeatures(JsonReader& json, std::string* features) {
  const auto entry = [&](const std::string& name) -> Status {
    std::string bytes, feature;
    MR_RETURN_IF_ERROR(ReadFeature(json, &feature));
    AppendField(1, name, &bytes);
    AppendField(2, feature, &bytes);
    AppendField(1, bytes, features);
    return absl::OkStatus();
  };
  return json.Object([&](const std::string& key) -> Status {
    if (key != "feature") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    return json.TakeNull() ? absl::OkStatus() : json.Object(entry);
  });
}

Status ReadExample(absl::string_view text, std::string* example) {
  JsonReader json(text);
  const auto member = [&](const std::string& key) -> Status {
    if (key != "features") return json.Fail(absl::StrCat("no such field: '", key.substr(0, 80), "'"));
    if (json.TakeNull()) return absl::OkStatus();
    std::string features;
    MR_RETURN_IF_ERROR(ReadFeatures(json, &features));
    AppendField(1, features, example);
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(json.Object(member));
  return json.Peek() == '\0' ? absl::OkStatus() : json.Fail("extraneous characters");
}

Status DecodeJsonExample(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    std::string example;
    MR_RETURN_IF_ERROR(ReadExample(in.data<TString>()[i], &example));
    out->mutable_data<TString>()[i] = example;
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterJsonKernels(KernelRegistry& registry) { registry.AddFn({.op = "DecodeJSONExample"}, DecodeJsonExample); }

}  // namespace millrace
