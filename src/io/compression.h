// SPDX-License-Identifier: Apache-2.0
// Deflate streams: a file that compresses what is appended, and a source of bytes that expands what it reads.
#pragma once

#include <memory>
#include <string>

#include "base/env.h"

namespace millrace {

enum class Compression { kNone, kZlib, kGzip };

// "", "ZLIB", "GZIP"; InvalidArgument otherwise.
StatusOr<Compression> CompressionFromName(absl::string_view name);

// Appends what a stream in memory expands to, as far as it goes: one that is cut off gives what there is of it. Bytes
// behind a zlib stream are ignored, several gzip streams are one. DataLoss where it is broken, ResourceExhausted when
// *out gets longer than `limit`.
Status Expand(absl::string_view compressed, Compression compression, size_t limit, std::string* out);

// Bytes from the front of a file to its end. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Appends up to n bytes to *out; fewer only at the end. Allocates no more than there is (and one chunk).
  virtual Status Read(uint64_t n, std::string* out) = 0;
};

// Both take over `file`. DataLoss where the compressed stream is broken or ends early.
std::unique_ptr<ByteSource> NewByteSource(std::unique_ptr<RandomAccessFile> file, Compression compression,
                                          uint64_t offset = 0);
// How zlib compresses, in its own numbers. window_bits beyond 15 make a gzip stream.
struct DeflateOptions {
  int level = -1;
  int window_bits = 15;
  int mem_level = 8;
  int strategy = 0;
};
// Returns `file` itself for kNone. InvalidArgument: zlib does not take the options. Flush ends a deflate block, so that
// a reader sees all that was appended.
StatusOr<std::unique_ptr<WritableFile>> NewCompressedFile(
    std::unique_ptr<WritableFile> file, Compression compression, const DeflateOptions& options = {});

}  // namespace millrace
