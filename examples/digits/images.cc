// SPDX-License-Identifier: Apache-2.0
#include "images.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <stdexcept>

namespace {

// The whole file; gzip or plain (zlib tells them apart). At most 1 GB.
std::string ReadFile(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("cannot open " + path);
  std::string data;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0 && data.size() < (size_t{1} << 30)) {
    data.append(buffer, static_cast<size_t>(n));
  }
  gzclose(file);
  if (n != 0) throw std::runtime_error("cannot read " + path);
  return data;
}

int64_t BigEndian(const std::string& data, size_t at) {
  int64_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(data[at + i]);
  return v;
}

// Checks magic number and size, returns the dimensions.
std::vector<int64_t> Header(const std::string& path, const std::string& data, int rank) {
  const size_t header = 4 + 4 * static_cast<size_t>(rank);
  if (data.size() < header || BigEndian(data, 0) != 0x800 + rank) {
    throw std::runtime_error(path + " is no IDX file of rank " + std::to_string(rank));
  }
  std::vector<int64_t> dims;
  uint64_t product = 1;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    dims.push_back(BigEndian(data, 4 + 4 * i));
    product *= static_cast<uint64_t>(dims.back());
    if (product > data.size()) break;
  }
  if (product != data.size() - header) throw std::runtime_error(path + " is cut short or has bytes too many");
  return dims;
}

std::string FindFile(const std::string& folder, const std::string& part) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find(part) != std::string::npos) found.push_back(entry.path().string());
  }
  if (found.empty()) throw std::runtime_error("no *" + part + "* in " + folder);
  return *std::min_element(found.begin(), found.end());
}

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Images LoadImages(const std::string& folder) {
  const std::string image_path = FindFile(folder, "images-idx3-ubyte"),
                    label_path = FindFile(folder, "labels-idx1-ubyte");
  const std::string pixels = ReadFile(image_path), labels = ReadFile(label_path);
  const std::vector<int64_t> dims = Header(image_path, pixels, 3);
  if (Header(label_path, labels, 1)[0] != dims[0]) throw std::runtime_error("as many labels as images are wanted");
  Images all{dims[0], dims[1], dims[2], {}, {}};
  unsigned char brightest = 1;
  for (size_t i = 16; i < pixels.size(); ++i) brightest = std::max(brightest, static_cast<unsigned char>(pixels[i]));
  for (size_t i = 16; i < pixels.size(); ++i) {
    all.pixels.push_back(static_cast<float>(static_cast<unsigned char>(pixels[i])) / static_cast<float>(brightest));
  }
  for (size_t i = 8; i < labels.size(); ++i) {
    all.labels.push_back(static_cast<unsigned char>(labels[i]));
    if (all.labels.back() > 9) throw std::runtime_error("label " + std::to_string(all.labels.back()) + " is no digit");
  }
  return all;
}

std::vector<int64_t> ShuffledOrder(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  uint64_t state = seed * 0x9e3779b97f4a7c15u + epoch;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[SplitMix(state) % i]);
  return order;
}
