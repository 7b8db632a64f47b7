// SPDX-License-Identifier: Apache-2.0
// The records of CSV files (RFC 4180), whose quoted fields may hold line ends. A record that is broken is an error in
// its place; reading goes on behind its end.
#include "io/compression.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/parsing/csv_field.h"

namespace millrace {
namespace {

struct CsvFiles {
  std::vector<std::string> paths;
  Compression compression = Compression::kNone;
  bool header = false;
  char delimiter = ',';
  bool quotes = true;
  std::string missing;            // what stands for nothing, besides nothing
  std::vector<int64_t> selected;  // ascending; empty: all
  Element defaults;               // each of one element, or of none: then a value is required
};

// A file's characters, from the front.
class Characters {
 public:
  explicit Characters(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  static constexpr int kEnd = -1;  // or an error, see status()
  int Peek() { return at_ < chunk_.size() || Fill() ? static_cast<unsigned char>(chunk_[at_]) : kEnd; }
  void Pass() { ++at_; }  // what Peek has shown
  const Status& status() const { return status_; }

 private:
  bool Fill() {
    constexpr uint64_t kChunk = 256 << 10;
    if (ended_) return false;
    chunk_.clear();
    at_ = 0;
    status_ = source_->Read(kChunk, &chunk_);
    ended_ = !status_.ok() || chunk_.size() < kChunk;
    return status_.ok() && !chunk_.empty();
  }

  std::unique_ptr<ByteSource> source_;
  std::string chunk_;
  size_t at_ = 0;
  bool ended_ = false;
  Status status_;
};

// Reads records into their selected fields.
class CsvReader {
 public:
  CsvReader(Characters characters, const CsvFiles& format) : in_(std::move(characters)), format_(format) {}

  // False at the end of the file. What is wrong with the record, *broken says; an error that is returned is the file's.
  StatusOr<bool> Next(std::vector<std::string>* fields, Status* broken) {
    if (in_.Peek() == Characters::kEnd) return in_.status().ok() ? StatusOr<bool>(false) : in_.status();
    fields->clear();
    *broken = absl::OkStatus();
    const size_t wanted = format_.defaults.size();
    std::string field;
    bool more = true;
    for (int64_t column = 0; more; ++column) {
      field.clear();
      more = Field(&field, broken);
      const std::vector<int64_t>& selected = format_.selected;
      if (selected.empty() && fields->size() == wanted) {
        broken->Update(InvalidArgument("Expect ", wanted, " fields but have more in record"));
      } else if (selected.empty() || (fields->size() < wanted && selected[fields->size()] == column)) {
        fields->push_back(field);
      }
    }
    MR_RETURN_IF_ERROR(in_.status());
    if (fields->size() < wanted) {
      broken->Update(InvalidArgument("Expect ", wanted, " fields but have ", fields->size(), " in record"));
    }
    return true;
  }

  // Beyond the first record, whatever it says.
  Status PassHeader() {
    std::vector<std::string> unused;
    Status unread;
    MR_ASSIGN_OR_RETURN(const bool found, Next(&unused, &unread));
    return found ? absl::OkStatus() : InvalidArgument("Can't read header of file");
  }

 private:
  // One field with what ends it. Whether another one follows in the record.
  bool Field(std::string* field, Status* broken) {
    bool open = format_.quotes && in_.Peek() == '"';
    if (open) in_.Pass();
    while (true) {
      const int c = in_.Peek();
      if (c == Characters::kEnd) {
        if (open) *broken = InvalidArgument("Reached end of file without closing quoted field in record");
        return false;
      }
      in_.Pass();
      if (open) {
        if (c != '"') {
          field->push_back(static_cast<char>(c));
          continue;
        }
        const int behind = in_.Peek();
        if (behind == '"') {
          in_.Pass();
          field->push_back('"');
        } else if (behind == Characters::kEnd || EndsField(behind)) {
          open = false;
        } else {
          broken->Update(InvalidArgument("Quote inside a string has to be escaped by another quote"));
        }
        continue;
      }
      if (c == format_.delimiter) return true;
      if (c == '\r' && in_.Peek() == '\n') in_.Pass();
      if (c == '\n' || c == '\r') return false;
      if (c == '"' && format_.quotes) broken->Update(InvalidArgument("Unquoted fields cannot have quotes inside"));
      field->push_back(static_cast<char>(c));
    }
  }
  bool EndsField(int c) const { return c == format_.delimiter || c == '\n' || c == '\r'; }

  Characters in_;
  const CsvFiles& format_;
};

class CsvDataset final : public Dataset {
 public:
  CsvDataset(ElementSpec spec, CsvFiles files) : Dataset(std::move(spec)), files_(std::move(files)) {}
  StatusOr<DataIteratorPtr> MakeIterator(DataContext&) const override {
    return std::make_unique<Iterator>(RefPtr<const CsvDataset>::Share(this));
  }

 private:
  class Iterator final : public DataIterator {
   public:
    explicit Iterator(RefPtr<const CsvDataset> d) : dataset_(std::move(d)) {}
    StatusOr<bool> Next(DataContext& ctx, Element* element) override {
      const CsvFiles& files = dataset_->files_;
      std::vector<std::string> fields;
      while (file_ < files.paths.size()) {
        MR_RETURN_IF_ERROR(ctx.KeepGoing());
        if (!reader_) {
          const Status opened = Open(ctx.env);
          if (absl::IsInvalidArgument(opened)) ++file_;  // it has no header
          MR_RETURN_IF_ERROR(opened);
        }
        Status broken;
        const StatusOr<bool> found = reader_->Next(&fields, &broken);
        if (!found.ok() || !*found) {
          reader_.reset();
          ++file_;
        }
        MR_RETURN_IF_ERROR(found.status());
        if (!*found) continue;
        MR_RETURN_IF_ERROR(broken);
        MR_ASSIGN_OR_RETURN(*element, Values(fields));
        return true;
      }
      return false;
    }

   private:
    // A file that cannot be opened is tried again by the next call, as in TensorFlow.
    Status Open(Env& env) {
      const CsvFiles& files = dataset_->files_;
      MR_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, env.NewRandomAccessFile(files.paths[file_]));
      auto reader = std::make_unique<CsvReader>(Characters(NewByteSource(std::move(file), files.compression)), files);
      if (files.header) MR_RETURN_IF_ERROR(reader->PassHeader());
      reader_ = std::move(reader);
      return absl::OkStatus();
    }

    StatusOr<Element> Values(const std::vector<std::string>& fields) const {
      const CsvFiles& files = dataset_->files_;
      Element element;
      for (size_t i = 0; i < fields.size(); ++i) {
        const std::string& field = fields[i];
        const Tensor& fallback = files.defaults[i];
        MR_ASSIGN_OR_RETURN(Tensor value, Tensor::Make(fallback.dtype(), Shape()));
        if (field.empty() || field == files.missing) {
          if (fallback.num_elements() != 1) {
            return InvalidArgument("Field ", i, " is required but missing in record!");
          }
          StoreCsvDefault(fallback, value, 0);
        } else if (!StoreCsvField(field, value, 0)) {
          return InvalidArgument(
              "Field ", i, " in record is not a valid ", DTypeName(value.dtype()), ": ", field.substr(0, 80));
        }
        element.push_back(std::move(value));
      }
      return element;
    }

    const RefPtr<const CsvDataset> dataset_;
    size_t file_ = 0;
    std::unique_ptr<CsvReader> reader_;  // null: the file is not open
  };

  const CsvFiles files_;
};

class CsvKernel final : public DatasetKernel {
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(DatasetKernel::Init(init));
    ElementSpec scalars{spec().types, std::vector<PartialShape>(spec().types.size(), PartialShape::Scalar())};
    return CheckSpec(scalars, spec());
  }
  StatusOr<DatasetRef> Make(KernelContext& ctx) override {
    CsvFiles files;
    if (ctx.input(0).rank() > 1) return InvalidArgument("`filenames` must be a scalar or a vector.");
    for (const TString& path : ctx.input(0).flat<TString>()) files.paths.emplace_back(path.view());
    MR_ASSIGN_OR_RETURN(const std::string compression, Text(ctx, 1, "compression_type"));
    MR_ASSIGN_OR_RETURN(files.compression, CompressionFromName(compression));
    MR_ASSIGN_OR_RETURN(const int64_t buffer, ScalarInput(ctx, 2, "buffer_size"));
    if (buffer <= 0) return InvalidArgument("buffer_size should be positive");
    MR_ASSIGN_OR_RETURN(files.header, FlagInput(ctx, 3, "header"));
    MR_ASSIGN_OR_RETURN(const std::string delimiter, Text(ctx, 4, "field_delim"));
    if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char, got \"", delimiter, "\"");
    files.delimiter = delimiter[0];
    MR_ASSIGN_OR_RETURN(files.quotes, FlagInput(ctx, 5, "use_quote_delim"));
    if (files.quotes && files.delimiter == '"') return InvalidArgument("field_delim is the quote of fields");
    MR_ASSIGN_OR_RETURN(files.missing, Text(ctx, 6, "na_value"));
    if (ctx.input(7).rank() != 1) return InvalidArgument("select_cols must be a vector");
    MR_ASSIGN_OR_RETURN(files.selected, ctx.input(7).IntValues());
    MR_ASSIGN_OR_RETURN(files.defaults, KeptInputs(ctx, "record_defaults"));
    MR_RETURN_IF_ERROR(CheckSelectedFields(files.selected, static_cast<int>(files.defaults.size())));
    for (size_t i = 0; i < files.defaults.size(); ++i) {
      const Tensor& value = files.defaults[i];
      if (value.rank() > 1 || value.num_elements() > 1) {
        return InvalidArgument(
            "There should only be 1 default per field but field ", i, " has ", value.shape().ToString());
      }
    }
    return DatasetRef(MakeRef<CsvDataset>(spec(), std::move(files)));
  }
  static StatusOr<std::string> Text(const KernelContext& ctx, int i, absl::string_view what) {
    if (ctx.input(i).rank() != 0) return InvalidArgument(what, " must be a scalar");
    return ctx.input(i).data<TString>()->str();
  }
};

}  // namespace

void RegisterDatasetCsvKernels(KernelRegistry& r) {
  for (const char* op : {"CSVDataset", "ExperimentalCSVDataset"}) r.Add<CsvKernel>({.op = op});
}

}  // namespace millrace
