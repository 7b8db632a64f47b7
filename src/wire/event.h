// SPDX-License-Identifier: Apache-2.0
//
// Event files and the summaries in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/graph.h"
#include "wire/message.h"

namespace millrace::wire {

struct SessionLog {
  enum Status : int32_t {
    kStatusUnspecified = 0,
    kStart = 1,
    kStop = 2,
    kCheckpoint = 3,
  };

  int32_t status = 0;
  std::string checkpoint_path;
  std::string msg;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct LogMessage {
  enum Level : int32_t {
    kUnknown = 0,
    kDebugging = 10,
    kInfo = 20,
    kWarn = 30,
    kError = 40,
    kFatal = 50,
  };

  int32_t level = 0;
  std::string message;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct TaggedRunMetadata {
  std::string tag;
  std::string run_metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SummaryImage {
  int32_t height = 0;
  int32_t width = 0;
  int32_t colorspace = 0;
  std::string encoded_image_string;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SummaryAudio {
  float sample_rate = 0;
  int64_t num_channels = 0;
  int64_t length_frames = 0;
  std::string encoded_audio_string;
  std::string content_type;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct HistogramProto {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limit;
  std::vector<double> bucket;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SummaryPluginData {
  std::string plugin_name;
  std::string content;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SummaryMetadata {
  enum DataClass : int32_t {
    kUnknown = 0,
    kScalar = 1,
    kTensor = 2,
    kBlobSequence = 3,
  };

  Box<SummaryPluginData> plugin_data;
  std::string display_name;
  std::string summary_description;
  int32_t data_class = 0;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct SummaryValue {
  enum class Kind : uint8_t {
    kNone,
    kSimpleValue,
    kObsoleteOldStyleHistogram,
    kImage,
    kHisto,
    kAudio,
    kTensor,
  };

  Kind kind = Kind::kNone;
  std::string tag;
  float simple_value = 0;
  std::string obsolete_old_style_histogram;
  Box<SummaryImage> image;
  Box<HistogramProto> histo;
  Box<SummaryAudio> audio;
  std::string node_name;
  Box<TensorProto> tensor;
  Box<SummaryMetadata> metadata;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

struct Summary {
  std::vector<SummaryValue> value;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

// One record of an event file. graph_def, meta_graph_def and run_metadata are
// encoded messages.
struct Event {
  enum class Kind : uint8_t {
    kNone,
    kFileVersion,
    kGraphDef,
    kSummary,
    kLogMessage,
    kSessionLog,
    kTaggedRunMetadata,
    kMetaGraphDef,
  };

  Kind kind = Kind::kNone;
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::string graph_def;
  Box<Summary> summary;
  Box<LogMessage> log_message;  // deprecated
  Box<SessionLog> session_log;
  Box<TaggedRunMetadata> tagged_run_metadata;
  std::string meta_graph_def;
  UnknownFields unknown_fields;

  static const MessageInfo& Info();
};

}  // namespace millrace::wire
