// SPDX-License-Identifier: Apache-2.0
// The hash of bytes is MurmurHash64A (Austin Appleby); how the parts of a function follow each other is TensorFlow's.
#include "graph/function_hash.h"

#include <cstring>
#include <map>
#include <set>

#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

constexpr uint64_t kSeed = 0xDECAFCAFFE;

uint64_t HashBytes(absl::string_view bytes, uint64_t seed = kSeed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t h = seed ^ (bytes.size() * kFactor);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    word *= kFactor;
    word = (word ^ (word >> kShift)) * kFactor;
    h = (h ^ word) * kFactor;
  }
  if (!bytes.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data(), bytes.size());
    h = (h ^ rest) * kFactor;
  }
  h = (h ^ (h >> kShift)) * kFactor;
  return h ^ (h >> kShift);
}

uint64_t Combine(uint64_t a, uint64_t b) { return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (a >> 4)); }

template <typename M>
uint64_t HashMessage(const M& message, uint64_t seed = kSeed) {
  return HashBytes(wire::Encode(message), seed);
}

void AppendVarint(uint64_t n, std::string* out) {
  for (; n >= 0x80; n >>= 7) out->push_back(static_cast<char>((n & 0x7f) | 0x80));
  out->push_back(static_cast<char>(n));
}

// However its elements are written, they count as tensor_content.
StatusOr<uint64_t> HashTensor(const wire::TensorProto& proto) {
  MR_ASSIGN_OR_RETURN(const Tensor tensor, TensorFromProto(proto));
  wire::TensorProto plain;
  plain.dtype = proto.dtype;
  plain.tensor_shape.Ensure() = ShapeToProto(tensor.shape());
  if (IsPlain(tensor.dtype())) {
    plain.tensor_content.assign(static_cast<const char*>(tensor.raw()), tensor.TotalBytes());
  } else if (tensor.dtype() == DType::kString) {
    for (const TString& s : tensor.flat<TString>()) AppendVarint(s.size(), &plain.tensor_content);
    for (const TString& s : tensor.flat<TString>()) plain.tensor_content.append(s.data(), s.size());
  }
  return HashMessage(plain);
}

StatusOr<uint64_t> HashAttr(const wire::AttrValue& value) {
  if (value.kind == wire::AttrValue::Kind::kTensor && value.tensor) return HashTensor(*value.tensor);
  if (value.kind != wire::AttrValue::Kind::kFunc || !value.func) return HashMessage(value);
  uint64_t h = HashBytes(value.func->name);
  std::map<std::string, const wire::AttrValue*> attrs;
  for (const auto& [name, attr] : value.func->attr) attrs.emplace(name, &attr);
  for (const auto& [name, attr] : attrs) {
    MR_ASSIGN_OR_RETURN(const uint64_t attr_hash, HashAttr(*attr));
    h = Combine(attr_hash, HashBytes(name, h));
  }
  return h;
}

StatusOr<uint64_t> HashAttrDef(const wire::OpAttrDef& def) {
  const wire::AttrValue none;
  MR_ASSIGN_OR_RETURN(const uint64_t fallback, HashAttr(def.default_value ? *def.default_value : none));
  MR_ASSIGN_OR_RETURN(const uint64_t allowed, HashAttr(def.allowed_values ? *def.allowed_values : none));
  uint64_t h = HashBytes(def.type, HashBytes(def.name));
  h = HashBytes(def.description, Combine(fallback, h));
  h = Combine(def.has_minimum ? 1 : 0, h);
  h = Combine(static_cast<uint64_t>(def.minimum), h);
  return Combine(allowed, h);
}

StatusOr<uint64_t> HashSignature(wire::OpDef def) {
  std::map<std::string, const wire::OpAttrDef*> attrs;
  for (const wire::OpAttrDef& attr : def.attr) attrs[attr.name] = &attr;
  uint64_t h = kSeed;
  for (const auto& [name, attr] : attrs) {
    MR_ASSIGN_OR_RETURN(const uint64_t attr_hash, HashAttrDef(*attr));
    h = Combine(attr_hash, HashBytes(name, h));
  }
  for (const std::string& name : std::set<std::string>(def.control_output.begin(), def.control_output.end())) {
    h = Combine(h, HashBytes(name));
  }
  def.attr.clear();
  def.control_output.clear();
  return HashMessage(def, h);
}

StatusOr<uint64_t> HashNode(const wire::NodeDef& node) {
  uint64_t h = HashBytes(node.device, HashBytes(node.op, HashBytes(node.name)));
  std::set<std::string> controls;
  for (const std::string& input : node.input) {
    if (!input.empty() && input[0] == '^') {
      controls.insert(input);
    } else {
      h = HashBytes(input, h);
    }
  }
  for (const std::string& control : controls) h = HashBytes(control, h);
  std::map<std::string, const wire::AttrValue*> attrs;
  for (const auto& [name, value] : node.attr) {
    if (name.empty() || name[0] != '_') attrs.emplace(name, &value);
  }
  for (const auto& [name, value] : attrs) {
    MR_ASSIGN_OR_RETURN(const uint64_t value_hash, HashAttr(*value));
    h = Combine(value_hash, HashBytes(name, h));
  }
  return h;
}

template <typename Pairs>
uint64_t HashPairs(const Pairs& pairs, uint64_t h) {
  for (const auto& [name, value] : std::map<std::string, std::string>(pairs.begin(), pairs.end())) {
    h = HashBytes(value, HashBytes(name, h));
  }
  return h;
}

}  // namespace

StatusOr<uint64_t> FunctionHash(const wire::FunctionDef& def) {
  MR_ASSIGN_OR_RETURN(uint64_t h, HashSignature(def.signature ? *def.signature : wire::OpDef()));
  std::map<std::string, const wire::AttrValue*> attrs;
  for (const auto& [name, value] : def.attr) {
    if (value.kind != wire::AttrValue::Kind::kNone) attrs.emplace(name, &value);
  }
  for (const auto& [name, value] : attrs) {
    MR_ASSIGN_OR_RETURN(const uint64_t value_hash, HashAttr(*value));
    h = Combine(value_hash, HashBytes(name, h));
  }
  std::map<std::string, const wire::NodeDef*> nodes;
  for (const wire::NodeDef& node : def.node_def) nodes[node.name] = &node;
  uint64_t body = kSeed;
  for (const auto& [name, node] : nodes) {
    MR_ASSIGN_OR_RETURN(const uint64_t node_hash, HashNode(*node));
    body = Combine(node_hash, HashBytes(name, body));
  }
  return HashPairs(def.control_ret, HashPairs(def.ret, Combine(body, h)));
}

StatusOr<std::string> FunctionHashText(const wire::FunctionDef& def) {
  MR_ASSIGN_OR_RETURN(const uint64_t hash, FunctionHash(def));
  // Base64, the two characters that are not letters or digits replaced.
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789aA";
  unsigned char bytes[9] = {};
  std::memcpy(bytes, &hash, sizeof(hash));
  std::string text;
  for (int i = 0; i < 9; i += 3) {
    const unsigned word = static_cast<unsigned>(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    for (int shift = 18; shift >= 0; shift -= 6) text.push_back(kDigits[(word >> shift) & 63]);
  }
  text.resize(11);  // eight bytes
  return text;
}

}  // namespace millrace
