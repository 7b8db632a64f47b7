// SPDX-License-Identifier: Apache-2.0
// The accelerator as a type of device: the table of functions, and the library's entry.
#include <cstring>
#include <string>
#include <vector>

#include "accelerator.h"

namespace testacc {
namespace {

struct Devices {
  Settings settings;
  std::vector<std::unique_ptr<Accelerator>> open;
  std::mutex mu;
};
Devices& TheDevices() {
  static auto* const devices = new Devices;
  return *devices;
}

Accelerator& Of(void* device) { return *static_cast<Accelerator*>(device); }
Stream& Of(SP_Stream stream) { return *reinterpret_cast<Stream*>(stream); }
Event& OfEvent(void* event) { return *static_cast<Event*>(event); }

int Count(void*) { return TheDevices().settings.devices; }

void* Open(void*, int ordinal, TF_Status* status) {
  Devices& devices = TheDevices();
  const std::lock_guard<std::mutex> lock(devices.mu);
  if (devices.open.size() <= static_cast<size_t>(ordinal)) devices.open.resize(static_cast<size_t>(ordinal) + 1);
  std::unique_ptr<Accelerator>& device = devices.open[static_cast<size_t>(ordinal)];
  if (!device) device = std::make_unique<Accelerator>(devices.settings.memory_bytes);
  if (!device->ok()) TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "there is no memory for an accelerator");
  return device.get();
}

// Makes a table of `functions`.
MR_DeviceFunctions Table() {
  MR_DeviceFunctions f = {};
  f.struct_size = sizeof(f);
  f.count = Count;
  f.open = Open;
  f.memory_limit = [](void* device) { return Of(device).bytes(); };
  f.allocate = [](void* device, size_t bytes) { return Of(device).Allocate(bytes); };
  f.deallocate = [](void* device, void* memory, size_t bytes) { Of(device).Deallocate(memory, bytes); };
  f.create_stream = [](void* device, TF_Status*) { return reinterpret_cast<SP_Stream>(Of(device).NewStream()); };
  f.create_event = [](void*, TF_Status*) { return static_cast<void*>(new Event); };
  f.destroy_event = [](void*, void* event) { delete &OfEvent(event); };
  f.record_event = [](void*, SP_Stream stream, void* event, TF_Status*) { OfEvent(event).Record(Of(stream)); };
  f.wait_for_event = [](void*, SP_Stream stream, void* event, TF_Status*) { OfEvent(event).Wait(Of(stream)); };
  f.copy_to_host = [](void* device, SP_Stream stream, void* host, const void* memory, size_t bytes, TF_Status*) {
    const char* const from = Of(device).Mapped(memory);
    Of(stream).Queue([=] { std::memcpy(host, from, bytes); });
  };
  f.copy_from_host = [](void* device, SP_Stream stream, void* memory, const void* host, size_t bytes, TF_Status*) {
    char* const to = Of(device).Mapped(memory);
    Of(stream).Queue([=] { std::memcpy(to, host, bytes); });
  };
  f.copy_within = [](void* device, SP_Stream stream, void* to, const void* from, size_t bytes, TF_Status*) {
    char* const target = Of(device).Mapped(to);
    const char* const source = Of(device).Mapped(from);
    Of(stream).Queue([=] { std::memcpy(target, source, bytes); });
  };
  f.callback = [](void*, SP_Stream stream, MR_StreamCallback callback, void* arg, TF_Status*) {
    Of(stream).Queue([=] {
      TF_Status* const ok = TF_NewStatus();
      callback(arg, ok);
      TF_DeleteStatus(ok);
    });
  };
  f.synchronize = [](void*, SP_Stream stream, TF_Status*) { Of(stream).Synchronize(); };
  f.description = [](void*) { return "an accelerator made of threads, for tests"; };
  return f;
}

}  // namespace

Accelerator& AcceleratorOf(int ordinal) {
  Devices& devices = TheDevices();
  const std::lock_guard<std::mutex> lock(devices.mu);
  return *devices.open[static_cast<size_t>(ordinal)];
}

void RegisterDevice(TF_Status* status) {
  Devices& devices = TheDevices();
  devices.settings = SettingsFromEnvironment();
  SetDelays(devices.settings.seed, devices.settings.max_delay_micros);
  const MR_DeviceFunctions table = Table();
  MR_RegisterDevice("TESTACC", &table, status);
}

}  // namespace testacc

MR_DECLARE_PLUGIN();

extern "C" {

TF_CAPI_EXPORT void MR_PluginInit(const MR_Api*, TF_Status* status) {
  for (void (*part)(TF_Status*) :
       {testacc::RegisterDevice, testacc::RegisterElementwise, testacc::RegisterArray, testacc::RegisterReductions,
        testacc::RegisterMatrices, testacc::RegisterImages, testacc::RegisterTraining}) {
    if (TF_GetCode(status) == TF_OK) part(status);
  }
}

// For tests: accelerator.h says what they do.
TF_CAPI_EXPORT void TestaccSetDelays(uint64_t seed, int max_delay_micros) {
  testacc::SetDelays(seed, max_delay_micros);
}
TF_CAPI_EXPORT void TestaccFailLate(const char* node, int nth) { testacc::FailLate(node, nth); }

}  // extern "C"
