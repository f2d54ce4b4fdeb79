#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "worker/parameters/checkpoints/files.hpp"

namespace chorus::checkpoints {
namespace {

Error failed(std::string_view what, std::string const& path) {
  std::error_code const code(errno, std::generic_category());
  return {code, "cannot " + std::string(what) + " " + path + ": " + code.message()};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// Opens without waiting, as opening a FIFO would.
Descriptor open_file(std::string const& path, int flags) {
  int number = -1;
  do { number = ::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0644); } while (number < 0 && errno == EINTR);
  return Descriptor(number);
}

Status check_is_file(Descriptor const& file, std::string const& path, struct stat& status) {
  if (::fstat(file.get(), &status) != 0) return failed("look at", path);
  if (!S_ISREG(status.st_mode)) return Error(std::make_error_code(std::errc::invalid_argument), path + " is no file");
  return ok();
}

// Locks an open file until it is closed. remove_abandoned() of another process locks a file for a moment only.
enum class Locked { yes, by_another, unknown };
Locked lock_file(Descriptor const& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Locked::yes;
  return errno == EWOULDBLOCK ? Locked::by_another : Locked::unknown;
}

constexpr int lock_tries = 100;
constexpr std::chrono::milliseconds lock_every{10};

class PosixOutput final : public OutputFile {
 public:
  PosixOutput(Descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Status write(std::span<std::byte const> bytes) override {
    while (!bytes.empty()) {
      auto const written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed("write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return ok();
  }
  // Not repeated after a failure, because the kernel may have dropped the pages that it could not write.
  Status sync() override { return ::fsync(file_.get()) == 0 ? ok() : Status(failed("sync", path_)); }

 private:
  Descriptor file_;
  std::string path_;
};

class PosixInput final : public InputFile {
 public:
  PosixInput(Descriptor file, std::uint64_t size, std::string path)
      : file_(std::move(file)), size_(size), path_(std::move(path)) {}

  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    while (!bytes.empty()) {
      auto const got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read", path_);
      if (got == 0)
        return Error(std::make_error_code(std::errc::io_error), path_ + " ends at byte " + std::to_string(offset));
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return ok();
  }

 private:
  Descriptor file_;
  std::uint64_t size_;
  std::string path_;
};

class PosixFiles final : public Files {
 public:
  Status make_directory(std::string const& path) override {
    return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? ok() : Status(failed("make the directory", path));
  }
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override {
    for (int i = 0; i < lock_tries; ++i) {
      auto file = open_file(path, O_WRONLY | O_CREAT);
      if (!file.is_open()) return failed("create", path);
      struct stat status {};
      if (auto const checked = check_is_file(file, path, status); !checked) return checked.error();
      if (lock_file(file) == Locked::by_another) {
        std::this_thread::sleep_for(lock_every);
        continue;
      }
      // A file looks abandoned between its creation and its lock, and may have been removed.
      if (::fstat(file.get(), &status) != 0) return failed("look at", path);
      if (status.st_nlink == 0) continue;
      if (status.st_size != 0 && ::ftruncate(file.get(), 0) != 0) return failed("empty", path);
      return std::unique_ptr<OutputFile>(std::make_unique<PosixOutput>(std::move(file), path));
    }
    return Error(std::make_error_code(std::errc::device_or_resource_busy),
                 "cannot create " + path + ": another process is writing it");
  }
  Result<std::unique_ptr<InputFile>> open(std::string const& path) override {
    auto file = open_file(path, O_RDONLY);
    if (!file.is_open()) return failed("open", path);
    struct stat status {};
    if (auto const checked = check_is_file(file, path, status); !checked) return checked.error();
    auto const size = static_cast<std::uint64_t>(status.st_size);
    return std::unique_ptr<InputFile>(std::make_unique<PosixInput>(std::move(file), size, path));
  }
  Status rename(std::string const& from, std::string const& to) override {
    return std::rename(from.c_str(), to.c_str()) == 0 ? ok() : Status(failed("rename", from));
  }
  Status remove(std::string const& path) override {
    return ::unlink(path.c_str()) == 0 ? ok() : Status(failed("remove", path));
  }
  Result<bool> remove_abandoned(std::string const& path) override {
    auto const file = open_file(path, O_RDWR);
    if (!file.is_open()) return failed("open", path);
    struct stat status {};
    if (auto const checked = check_is_file(file, path, status); !checked) return checked.error();
    if (lock_file(file) != Locked::yes) return false;
    if (::unlink(path.c_str()) != 0) return failed("remove", path);
    return true;
  }
  Status remove_directory(std::string const& path) override {
    return ::rmdir(path.c_str()) == 0 ? ok() : Status(failed("remove the directory", path));
  }
  Status sync_directory(std::string const& path) override {
    auto const directory = open_file(path, O_RDONLY | O_DIRECTORY);
    return directory.is_open() && ::fsync(directory.get()) == 0 ? ok() : Status(failed("sync the directory", path));
  }
  Result<std::vector<std::string>> list(std::string const& path) override {
    std::unique_ptr<DIR, int (*)(DIR*)> const directory(::opendir(path.c_str()), &::closedir);
    if (!directory) return failed("list", path);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;
      auto const* const entry = ::readdir(directory.get());
      if (entry == nullptr && errno != 0) return failed("list", path);
      if (entry == nullptr) return names;
      std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
  }
};

}  // namespace

std::unique_ptr<Files> posix_files() { return std::make_unique<PosixFiles>(); }

}  // namespace chorus::checkpoints
