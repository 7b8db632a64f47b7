// SPDX-License-Identifier: Apache-2.0
#include "service/in_process_transport.h"

#include "service/local_worker.h"

namespace millrace {

void InProcessTransport::Add(LocalWorker* worker) {
  for (const DeviceInfo& d : worker->devices()) worker_of_device_[d.name] = worker;
}

void InProcessTransport::RecvAsync(absl::string_view device, int64_t step_id, absl::string_view key,
                                   Rendezvous::DoneCallback done) {
  auto it = worker_of_device_.find(device);
  if (it == worker_of_device_.end()) {
    return std::move(done)(
        Unavailable("no worker has device ", device, ", which is to send '", key, "'"), Tensor(), false);
  }
  it->second->ServeRecv(step_id, key, std::move(done));
}

}  // namespace millrace
