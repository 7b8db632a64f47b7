// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/checked.h"
#include "io/bundle_reader.h"
#include "io/v1_checkpoint.h"

namespace millrace {

StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(Env& env, const std::string& prefix) {
  if (env.FileExists(prefix + ".index")) {
    MR_ASSIGN_OR_RETURN(std::unique_ptr<BundleReader> reader, BundleReader::Open(env, prefix));
    return std::unique_ptr<CheckpointReader>(std::move(reader));
  }
  return OpenV1Checkpoint(env, prefix);
}

StatusOr<Tensor> AssembleParts(const std::string& name, DType dtype, const std::vector<TensorSlice::Extent>& want,
                               const std::vector<StoredPart>& parts,
                               const std::function<StatusOr<Tensor>(const StoredPart&)>& read) {
  std::vector<int64_t> dims;
  for (const TensorSlice::Extent& e : want) dims.push_back(e.length);
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  const auto missing = [&] {
    return InvalidArgument("checkpoint does not hold all of the wanted part of ", name, ", shape ", shape.ToString());
  };
  // What the parts hold is bounded by the files; only then is memory taken.
  int64_t held = 0;
  for (const StoredPart& part : parts) {
    if (!CheckedAdd(held, CommonElements(part.box, want), &held)) return missing();
  }
  if (held < shape.num_elements()) return missing();
  Tensor result;
  std::vector<bool> done;
  for (const StoredPart& part : parts) {
    if (CommonElements(part.box, want) == 0) continue;
    MR_ASSIGN_OR_RETURN(const Tensor source, read(part));
    if (part.box == want) return source;
    if (!result.IsInitialized()) {
      MR_ASSIGN_OR_RETURN(result, Tensor::Make(dtype, shape));
      done.resize(static_cast<size_t>(shape.num_elements()));
    }
    CopyCommonPart(source, part.box, &result, want, &done);
  }
  if (!std::all_of(done.begin(), done.end(), [](bool b) { return b; })) return missing();
  if (!result.IsInitialized()) return Tensor::Make(dtype, shape);
  return result;
}

}  // namespace millrace
