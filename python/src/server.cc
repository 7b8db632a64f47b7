// SPDX-License-Identifier: Apache-2.0
// Servers: tasks of clusters in this process.
#include "core.h"

namespace millrace::python {
namespace {

// What `fill(buffer, status)` writes.
template <typename Fill>
nb::bytes Filled(Fill fill) {
  CallStatus status;
  CallBuffer buffer;
  {
    const GilRelease release;
    fill(buffer, status);
  }
  status.RaiseIfError();
  return buffer.bytes();
}

nb::bytes TargetStatus(const std::string& target, int64_t timeout_ms) {
  return Filled([&](TF_Buffer* json, TF_Status* status) {
    Api().TargetStatus(target.c_str(), timeout_ms, json, status);
  });
}

class Server {
 public:
  explicit Server(nb::bytes def) {
    CallStatus status;
    {
      const GilRelease release;
      server_ = Api().NewServer(def.c_str(), def.size(), status);
    }
    status.RaiseIfError();
    target_ = Api().ServerTarget(server_);
  }
  ~Server() {
    const GilRelease release;  // steps that end may need it
    Api().DeleteServer(server_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& target() const { return target_; }
  void Start() { Call(Api().ServerStart); }
  void Stop() { Call(Api().ServerStop); }
  void Join() { Call(Api().ServerJoin); }
  nb::bytes Status() {
    return Filled([this](TF_Buffer* json, TF_Status* status) { Api().ServerStatus(server_, json, status); });
  }
  nb::bytes Steps() {
    return Filled([this](TF_Buffer* text, TF_Status* status) { Api().ServerSteps(server_, text, status); });
  }

 private:
  void Call(void (*function)(TF_Server*, TF_Status*)) {
    CallStatus status;
    {
      const GilRelease release;
      function(server_, status);
    }
    status.RaiseIfError();
  }

  TF_Server* server_ = nullptr;
  std::string target_;
};

}  // namespace

void DefineServer(nb::module_& m) {
  nb::class_<Server>(m, "Server")
      .def(nb::init<nb::bytes>())
      .def_prop_ro("target", &Server::target)
      .def("start", &Server::Start)
      .def("stop", &Server::Stop)
      .def("join", &Server::Join)
      .def("status", &Server::Status)
      .def("steps", &Server::Steps);
  m.def("target_status", &TargetStatus);
}

}  // namespace millrace::python
