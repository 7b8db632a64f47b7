// SPDX-License-Identifier: Apache-2.0
#include "io/wav.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace millrace {
namespace {

void PutLittle(uint64_t v, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}

uint64_t GetLittle(absl::string_view from) {
  uint64_t v = 0;
  for (size_t i = from.size(); i > 0; --i) v = v << 8 | static_cast<unsigned char>(from[i - 1]);
  return v;
}

class Reader {
 public:
  explicit Reader(absl::string_view rest) : rest_(rest) {}
  bool at_end() const { return rest_.empty(); }
  StatusOr<absl::string_view> Bytes(uint64_t n) {
    if (n > rest_.size()) return InvalidArgument("the WAV file ends ", n - rest_.size(), " bytes too early");
    const absl::string_view taken = rest_.substr(0, static_cast<size_t>(n));
    rest_.remove_prefix(static_cast<size_t>(n));
    return taken;
  }
  StatusOr<uint64_t> Number(int bytes) {
    MR_ASSIGN_OR_RETURN(const absl::string_view taken, Bytes(static_cast<uint64_t>(bytes)));
    return GetLittle(taken);
  }
  Status Expect(absl::string_view text) {
    MR_ASSIGN_OR_RETURN(const absl::string_view taken, Bytes(text.size()));
    if (taken == text) return absl::OkStatus();
    return InvalidArgument("Header mismatch: Expected ", text, " but found other bytes");
  }

 private:
  absl::string_view rest_;
};

Status ReadFormat(Reader& in, WavSound* sound) {
  MR_ASSIGN_OR_RETURN(const uint64_t size, in.Number(4));
  if (size != 16 && size != 18)
    return InvalidArgument("Bad format chunk size for WAV: Expected 16 or 18, but got ", size);
  MR_ASSIGN_OR_RETURN(const uint64_t format, in.Number(2));
  if (format != 1) return InvalidArgument("Bad audio format for WAV: Expected 1 (PCM), but got ", format);
  MR_ASSIGN_OR_RETURN(const uint64_t channels, in.Number(2));
  MR_ASSIGN_OR_RETURN(const uint64_t rate, in.Number(4));
  MR_ASSIGN_OR_RETURN(const uint64_t bytes_per_second, in.Number(4));
  MR_ASSIGN_OR_RETURN(const uint64_t bytes_per_frame, in.Number(2));
  MR_ASSIGN_OR_RETURN(const uint64_t bits, in.Number(2));
  if (bits != 16) return InvalidArgument("Can only read 16-bit WAV files, but received ", bits);
  if (channels == 0 || bytes_per_frame != 2 * channels) {
    return InvalidArgument("Bad bytes per sample in WAV header: ", bytes_per_frame, " for ", channels, " channels");
  }
  if (bytes_per_second != bytes_per_frame * rate) {
    return InvalidArgument(
        "Bad bytes per second in WAV header: Expected ", bytes_per_frame * rate, " but got ", bytes_per_second);
  }
  if (rate > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("sample rate ", rate, " does not fit into int32");
  }
  sound->channels = static_cast<int64_t>(channels);
  sound->rate = static_cast<int32_t>(rate);
  return in.Bytes(size - 16).status();
}

}  // namespace

std::string EncodeWav(absl::Span<const float> samples, uint64_t channels, uint64_t rate) {
  const uint64_t bytes = 2 * samples.size();
  std::string out = "RIFF";
  out.reserve(bytes + 44);
  PutLittle(bytes + 36, 4, &out);
  out += "WAVEfmt ";
  PutLittle(16, 4, &out);
  PutLittle(1, 2, &out);  // PCM
  PutLittle(channels, 2, &out);
  PutLittle(rate, 4, &out);
  PutLittle(rate * channels * 2, 4, &out);
  PutLittle(channels * 2, 2, &out);
  PutLittle(16, 2, &out);  // bits
  out += "data";
  PutLittle(bytes, 4, &out);
  const size_t head = out.size();
  out.resize(head + bytes);
  char* to = out.data() + head;
  for (const float s : samples) {
    // Half away from zero: from the number next to a half on, truncation does it.
    const float scaled = s * 32768.0f, moved = scaled + std::copysign(0x1.fffffep-2f, scaled);
    const float within = moved < -32768.0f ? -32768.0f : moved > 32767.0f ? 32767.0f : moved;
    const auto sample = static_cast<uint16_t>(static_cast<int32_t>(within == within ? within : 0.0f));
    *to++ = static_cast<char>(sample);
    *to++ = static_cast<char>(sample >> 8);
  }
  return out;
}

// Chunks other than the sound are passed over.
StatusOr<WavSound> ReadWav(absl::string_view file) {
  Reader in(file);
  WavSound sound;
  MR_RETURN_IF_ERROR(in.Expect("RIFF"));
  MR_RETURN_IF_ERROR(in.Number(4).status());
  MR_RETURN_IF_ERROR(in.Expect("WAVE"));
  MR_RETURN_IF_ERROR(in.Expect("fmt "));
  MR_RETURN_IF_ERROR(ReadFormat(in, &sound));
  bool found = false;
  while (!in.at_end()) {
    MR_ASSIGN_OR_RETURN(const absl::string_view id, in.Bytes(4));
    MR_ASSIGN_OR_RETURN(const uint64_t size, in.Number(4));
    if (id == "data" && found) return InvalidArgument("More than one data chunk found in WAV");
    MR_ASSIGN_OR_RETURN(const absl::string_view data, in.Bytes(size));
    if (id != "data") continue;
    found = true;
    sound.data = data;
    sound.frames = static_cast<int64_t>(size) / (2 * sound.channels);
  }
  if (!found) return InvalidArgument("No data chunk found in WAV");
  return sound;
}

float WavSample(const WavSound& sound, int64_t frame, int64_t channel) {
  const auto at = static_cast<size_t>(2 * (frame * sound.channels + channel));
  return static_cast<float>(static_cast<int16_t>(GetLittle(sound.data.substr(at, 2)))) / 32768.0f;
}

}  // namespace millrace
