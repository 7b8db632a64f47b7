// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/peer_users.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace millrace::grpc_transport {
namespace {

constexpr int64_t kGoodForNanos = 1'000'000'000;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr absl::string_view kEstablished = "01";
constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// "0100007F:B265": words of the address as the machine holds them, in hexadecimal digits, and the port.
bool ParseRow(absl::string_view text, std::array<uint8_t, 16>* address, int* port) {
  const size_t colon = text.find(':');
  if ((colon != 8 && colon != 32) || !absl::SimpleHexAtoi(text.substr(colon + 1), port)) return false;
  size_t at = 0;
  if (colon == 8)
    at =
        static_cast<size_t>(std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address->begin()) - address->begin());
  for (size_t i = 0; i < colon; i += 8, at += 4) {
    uint32_t word = 0;
    if (!absl::SimpleHexAtoi(text.substr(i, 8), &word)) return false;
    std::memcpy(address->data() + at, &word, sizeof(word));
  }
  return true;
}

}  // namespace

bool PeerUsers::Parse(std::string peer, Address* address) {
  absl::StrReplaceAll({{"%5B", "["}, {"%5D", "]"}}, &peer);
  const size_t colon = peer.rfind(':');
  if (colon == std::string::npos || !absl::SimpleAtoi(peer.substr(colon + 1), &address->second)) return false;
  absl::string_view host = absl::string_view(peer).substr(0, colon);
  if (absl::ConsumePrefix(&host, "ipv4:")) {
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), address->first.begin());
    return inet_pton(AF_INET, std::string(host).c_str(), address->first.data() + kMappedPrefix.size()) == 1;
  }
  return absl::ConsumePrefix(&host, "ipv6:[") && absl::ConsumeSuffix(&host, "]") &&
         inet_pton(AF_INET6, std::string(host).c_str(), address->first.data()) == 1;
}

void PeerUsers::ReadTable(const std::string& text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    Address peer, ours;
    uid_t user = 0;
    if (words.size() < 8 || words[3] != kEstablished || !ParseRow(words[2], &ours.first, &ours.second) ||
        ours.second != port_ || !ParseRow(words[1], &peer.first, &peer.second) || !absl::SimpleAtoi(words[7], &user)) {
      continue;
    }
    users_[peer] = user;
  }
}

Status PeerUsers::Read() {
  users_.clear();
  Status first;
  bool is_known = false;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {  // a kernel without IPv6 has no second one
    const StatusOr<std::string> text = env_.ReadFile(absl::StrCat(root_, file), kMostBytes);
    if (!text.ok()) {
      first.Update(text.status());
      continue;
    }
    is_known = true;
    ReadTable(*text);
  }
  read_at_ = env_.MonotonicNanos();
  return is_known ? absl::OkStatus() : first;
}

Status PeerUsers::CheckOwn(const std::string& peer) {
  static constexpr absl::string_view kCure =
      ". Servers without certificates serve their own user; MILLRACE_ALLOW_OTHER_USERS=1 where they start lets every "
      "user of this host in";
  Address address;
  if (!Parse(peer, &address)) return PermissionDenied("whose process is at ", peer, " cannot be told", kCure);
  absl::MutexLock lock(&mu_);
  auto at = users_.find(address);
  if (read_at_ < 0 || env_.MonotonicNanos() - read_at_ > kGoodForNanos || at == users_.end()) {
    const Status read = Read();
    if (!read.ok()) return PermissionDenied("whose process is at ", peer, " cannot be told: ", read.message(), kCure);
    at = users_.find(address);
  }
  if (at == users_.end()) return PermissionDenied("no process of this host is connected from ", peer, kCure);
  if (at->second == 0 || at->second == geteuid()) return absl::OkStatus();
  return PermissionDenied("user ", at->second, " at ", peer, " is not user ", geteuid(), " of this server", kCure);
}

}  // namespace millrace::grpc_transport
