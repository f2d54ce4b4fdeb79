#include <algorithm>
#include <utility>

#include "worker/parameters/disk/disk_calls.hpp"

namespace chorus::parameters {
namespace {

using checkpoints::Files;
using checkpoints::InputFile;
using checkpoints::OutputFile;
using Call = DiskCalls::Call;
using CallsPtr = std::shared_ptr<DiskCalls>;

constexpr std::size_t portion_bytes = std::size_t{8} << 20;
constexpr std::size_t unsynced_bytes_max = std::size_t{64} << 20;

Error given_up() { return {std::make_error_code(std::errc::operation_canceled), "nobody waits for it any more"}; }

class WatchedOutput final : public OutputFile {
 public:
  WatchedOutput(std::unique_ptr<OutputFile> file, CallsPtr calls, std::string path)
      : file_(std::move(file)), calls_(std::move(calls)), path_(std::move(path)) {}
  ~WatchedOutput() override {
    Call const call(*calls_, Call::Kind::clears, "close " + path_);
    file_.reset();
  }
  WatchedOutput(WatchedOutput const&) = delete;
  WatchedOutput& operator=(WatchedOutput const&) = delete;

  Status write(std::span<std::byte const> bytes) override {
    while (!bytes.empty()) {
      auto const portion = bytes.first(std::min(bytes.size(), portion_bytes));
      if (auto const written = write_portion(portion); !written) return written;
      bytes = bytes.subspan(portion.size());
      unsynced_bytes_ += portion.size();
      if (unsynced_bytes_ < unsynced_bytes_max) continue;
      if (auto const synced = sync(); !synced) return synced;
    }
    return ok();
  }
  Status sync() override {
    Call const call(*calls_, Call::Kind::makes, "sync " + path_);
    if (call.is_refused()) return given_up();
    unsynced_bytes_ = 0;
    return file_->sync();
  }

 private:
  Status write_portion(std::span<std::byte const> bytes) {
    Call const call(*calls_, Call::Kind::makes, "write " + path_);
    return call.is_refused() ? Status(given_up()) : file_->write(bytes);
  }

  std::unique_ptr<OutputFile> file_;
  CallsPtr const calls_;
  std::string const path_;
  std::size_t unsynced_bytes_ = 0;
};

class WatchedInput final : public InputFile {
 public:
  WatchedInput(std::unique_ptr<InputFile> file, CallsPtr calls, std::string path)
      : file_(std::move(file)), calls_(std::move(calls)), path_(std::move(path)) {}
  ~WatchedInput() override {
    Call const call(*calls_, Call::Kind::clears, "close " + path_);
    file_.reset();
  }
  WatchedInput(WatchedInput const&) = delete;
  WatchedInput& operator=(WatchedInput const&) = delete;

  std::uint64_t size() const override { return file_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    do {
      auto const portion = bytes.first(std::min(bytes.size(), portion_bytes));
      if (auto const read = read_portion(offset, portion); !read) return read;
      offset += portion.size();
      bytes = bytes.subspan(portion.size());
    } while (!bytes.empty());
    return ok();
  }

 private:
  Status read_portion(std::uint64_t offset, std::span<std::byte> bytes) const {
    Call const call(*calls_, Call::Kind::makes, "read " + path_);
    return call.is_refused() ? Status(given_up()) : file_->read(offset, bytes);
  }

  std::unique_ptr<InputFile> file_;
  CallsPtr const calls_;
  std::string const path_;
};

class WatchedFiles final : public Files {
 public:
  WatchedFiles(std::shared_ptr<Files> files, CallsPtr calls) : files_(std::move(files)), calls_(std::move(calls)) {}

  Status make_directory(std::string const& path) override {
    Call const call(*calls_, Call::Kind::makes, "make the directory " + path);
    return call.is_refused() ? Status(given_up()) : files_->make_directory(path);
  }
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override {
    Call const call(*calls_, Call::Kind::makes, "create " + path);
    if (call.is_refused()) return given_up();
    auto file = files_->create(path);
    if (!file) return file.error();
    return std::unique_ptr<OutputFile>(std::make_unique<WatchedOutput>(std::move(*file), calls_, path));
  }
  Result<std::unique_ptr<InputFile>> open(std::string const& path) override {
    Call const call(*calls_, Call::Kind::makes, "open " + path);
    if (call.is_refused()) return given_up();
    auto file = files_->open(path);
    if (!file) return file.error();
    return std::unique_ptr<InputFile>(std::make_unique<WatchedInput>(std::move(*file), calls_, path));
  }
  Status rename(std::string const& from, std::string const& to) override {
    Call const call(*calls_, Call::Kind::makes, "rename " + from);
    return call.is_refused() ? Status(given_up()) : files_->rename(from, to);
  }
  Status remove(std::string const& path) override {
    Call const call(*calls_, Call::Kind::clears, "remove " + path);
    return files_->remove(path);
  }
  Result<bool> remove_abandoned(std::string const& path) override {
    Call const call(*calls_, Call::Kind::clears, "remove " + path);
    return files_->remove_abandoned(path);
  }
  Status remove_directory(std::string const& path) override {
    Call const call(*calls_, Call::Kind::clears, "remove the directory " + path);
    return files_->remove_directory(path);
  }
  Status sync_directory(std::string const& path) override {
    Call const call(*calls_, Call::Kind::makes, "sync the directory " + path);
    return call.is_refused() ? Status(given_up()) : files_->sync_directory(path);
  }
  Result<std::vector<std::string>> list(std::string const& path) override {
    Call const call(*calls_, Call::Kind::clears, "list " + path);
    return files_->list(path);
  }

 private:
  std::shared_ptr<Files> const files_;
  CallsPtr const calls_;
};

}  // namespace

std::shared_ptr<Files> watched(std::shared_ptr<Files> files, CallsPtr calls) {
  return std::make_shared<WatchedFiles>(std::move(files), std::move(calls));
}

}  // namespace chorus::parameters
