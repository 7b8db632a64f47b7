// SPDX-License-Identifier: Apache-2.0
// What a process says of itself when it makes a transport: who it is, whom it trusts, how soon a silent peer is dead.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"

namespace millrace {

// Texts in PEM form. Both sides show a certificate that the authority has signed, or there is no connection (TLS 1.2 or
// newer). With a secret only servers do, and callers show the secret; whoever has it is everybody.
struct RpcCredentials {
  std::string authority;    // the CA's certificate
  std::string certificate;  // ours; the CA's intermediate ones may follow
  std::string key;          // ours
  std::string secret;       // 16 to 4096 letters, digits and marks; "": there is none

  bool operator==(const RpcCredentials&) const = default;
};

struct RpcTransportOptions {
  std::optional<RpcCredentials> credentials;  // nothing: neither encrypted nor authenticated
  // What certificates, key and authority are by now; empty: they stay. Asked on any thread when a connection begins or
  // a call wants one, at most once in `renewal_interval`. Open connections to servers give way to new ones when the
  // answer changes; an error, or what is no credentials, changes nothing. The secret stays.
  std::function<StatusOr<RpcCredentials>()> renew;
  absl::Duration renewal_interval = absl::Seconds(1);
  std::string origin;                  // of the credentials, for errors: "MILLRACE_TLS_CA=ca.pem, ..."
  std::string server_name;             // that a server's certificate must have, instead of its host's name
  bool allow_insecure_remote = false;  // whether to listen without credentials where other hosts can reach
  bool allow_other_users = false;      // whether without credentials other users of this host may call
  // A peer that answers no ping for `keepalive_timeout` is dead: its calls end as Unavailable.
  absl::Duration keepalive_interval = absl::Seconds(1);
  absl::Duration keepalive_timeout = absl::Seconds(10);
  int completion_threads = 0;  // of a server, and of all channels together; 0: by the number of processors
};

}  // namespace millrace
