// SPDX-License-Identifier: Apache-2.0
#include "wire/event.h"

#include "wire/enums.h"
#include "wire/table.h"

namespace millrace::wire {

const MessageInfo& SessionLog::Info() {
  static const MessageInfo& info =
      Table<SessionLog>("SessionLog")
          .Enum(1, "status", &SessionLog::status, kSessionStatusEnum)
          .Field(2, "checkpoint_path", &SessionLog::checkpoint_path)
          .Field(3, "msg", &SessionLog::msg)
          .Build();
  return info;
}

const MessageInfo& LogMessage::Info() {
  static const MessageInfo& info =
      Table<LogMessage>("LogMessage")
          .Enum(1, "level", &LogMessage::level, kLogLevelEnum)
          .Field(2, "message", &LogMessage::message)
          .Build();
  return info;
}

const MessageInfo& TaggedRunMetadata::Info() {
  static const MessageInfo& info =
      Table<TaggedRunMetadata>("TaggedRunMetadata")
          .Field(1, "tag", &TaggedRunMetadata::tag)
          .Field(2, "run_metadata", &TaggedRunMetadata::run_metadata)
          .Build();
  return info;
}

const MessageInfo& SummaryImage::Info() {
  static const MessageInfo& info =
      Table<SummaryImage>("Summary.Image")
          .Field(1, "height", &SummaryImage::height)
          .Field(2, "width", &SummaryImage::width)
          .Field(3, "colorspace", &SummaryImage::colorspace)
          .Field(4, "encoded_image_string", &SummaryImage::encoded_image_string)
          .Build();
  return info;
}

const MessageInfo& SummaryAudio::Info() {
  static const MessageInfo& info =
      Table<SummaryAudio>("Summary.Audio")
          .Field(1, "sample_rate", &SummaryAudio::sample_rate)
          .Field(2, "num_channels", &SummaryAudio::num_channels)
          .Field(3, "length_frames", &SummaryAudio::length_frames)
          .Field(4, "encoded_audio_string", &SummaryAudio::encoded_audio_string)
          .Field(5, "content_type", &SummaryAudio::content_type)
          .Build();
  return info;
}

const MessageInfo& HistogramProto::Info() {
  static const MessageInfo& info =
      Table<HistogramProto>("HistogramProto")
          .Field(1, "min", &HistogramProto::min)
          .Field(2, "max", &HistogramProto::max)
          .Field(3, "num", &HistogramProto::num)
          .Field(4, "sum", &HistogramProto::sum)
          .Field(5, "sum_squares", &HistogramProto::sum_squares)
          .Field(6, "bucket_limit", &HistogramProto::bucket_limit)
          .Field(7, "bucket", &HistogramProto::bucket)
          .Build();
  return info;
}

const MessageInfo& SummaryPluginData::Info() {
  static const MessageInfo& info =
      Table<SummaryPluginData>("SummaryMetadata.PluginData")
          .Field(1, "plugin_name", &SummaryPluginData::plugin_name)
          .Field(2, "content", &SummaryPluginData::content)
          .Build();
  return info;
}

const MessageInfo& SummaryMetadata::Info() {
  static const MessageInfo& info =
      Table<SummaryMetadata>("SummaryMetadata")
          .Field(1, "plugin_data", &SummaryMetadata::plugin_data)
          .Field(2, "display_name", &SummaryMetadata::display_name)
          .Field(3, "summary_description", &SummaryMetadata::summary_description)
          .Enum(4, "data_class", &SummaryMetadata::data_class, kDataClassEnum)
          .Build();
  return info;
}

const MessageInfo& SummaryValue::Info() {
  static const MessageInfo& info =
      Table<SummaryValue>("Summary.Value")
          .Field(1, "tag", &SummaryValue::tag)
          .Member(SummaryValue::Kind::kSimpleValue, 2, "simple_value", &SummaryValue::simple_value)
          .Member(SummaryValue::Kind::kObsoleteOldStyleHistogram, 3, "obsolete_old_style_histogram",
                  &SummaryValue::obsolete_old_style_histogram)
          .Member(SummaryValue::Kind::kImage, 4, "image", &SummaryValue::image)
          .Member(SummaryValue::Kind::kHisto, 5, "histo", &SummaryValue::histo)
          .Member(SummaryValue::Kind::kAudio, 6, "audio", &SummaryValue::audio)
          .Field(7, "node_name", &SummaryValue::node_name)
          .Member(SummaryValue::Kind::kTensor, 8, "tensor", &SummaryValue::tensor)
          .Field(9, "metadata", &SummaryValue::metadata)
          .Build();
  return info;
}

const MessageInfo& Summary::Info() {
  static const MessageInfo& info = Table<Summary>("Summary").Field(1, "value", &Summary::value).Build();
  return info;
}

const MessageInfo& Event::Info() {
  static const MessageInfo& info =
      Table<Event>("Event")
          .Field(1, "wall_time", &Event::wall_time)
          .Field(2, "step", &Event::step)
          .Member(Event::Kind::kFileVersion, 3, "file_version", &Event::file_version)
          .Member(Event::Kind::kGraphDef, 4, "graph_def", &Event::graph_def)
          .Member(Event::Kind::kSummary, 5, "summary", &Event::summary)
          .Member(Event::Kind::kLogMessage, 6, "log_message", &Event::log_message)
          .Member(Event::Kind::kSessionLog, 7, "session_log", &Event::session_log)
          .Member(Event::Kind::kTaggedRunMetadata, 8, "tagged_run_metadata", &Event::tagged_run_metadata)
          .Member(Event::Kind::kMetaGraphDef, 9, "meta_graph_def", &Event::meta_graph_def)
          .Build();
  return info;
}

}  // namespace millrace::wire
