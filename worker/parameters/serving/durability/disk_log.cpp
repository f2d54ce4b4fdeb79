#include "worker/parameters/serving/durability/disk_log.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

template <class T>
Result<T> result_of(http::Checked<Result<T>> done) {
  if (!done) return Error(std::make_error_code(std::errc::operation_canceled), done.error().detail);
  return std::move(*done);
}

}  // namespace

// Used by the work alone.
struct DiskLog::State {
  State(std::shared_ptr<checkpoints::Files> disk_files, std::string directory, std::uint32_t epoch)
      : files(std::move(disk_files)), log(*files, std::move(directory), epoch) {}

  Status begin() {
    if (!is_open)
      if (auto status = log.open(); !status) return status;
    auto const begun = log.begin();
    if (!begun) return begun.error();
    generation = *begun;
    is_open = true;
    return ok();
  }
  Result<Appended> append(std::vector<LogEntry> const& entries) {
    auto const begun = steady_clock::now();
    auto const before = log.bytes();
    if (auto status = log.append(entries); !status) return status.error();
    return Appended{log.bytes() - before, std::chrono::duration<double>(steady_clock::now() - begun).count()};
  }

  std::shared_ptr<checkpoints::Files> const files;
  PushLog log;
  std::uint64_t generation = 0;
  bool is_open = false;
};

// The state is destroyed on a thread of the disk, because closing a file waits for the disk.
DiskLog::DiskLog(Disk& disk, std::string title, std::string directory, std::uint32_t epoch)
    : disk_(disk),
      title_(std::move(title)),
      state_(std::make_unique<State>(disk.files(), std::move(directory), epoch).release(),
             [&disk](State* ended) { disk.let_go(std::shared_ptr<State const>(ended)); }) {}

template <class T>
asio::awaitable<Result<T>> DiskLog::run(std::string what, std::function<http::Checked<Result<T>>()> work) {
  co_return result_of(
      co_await disk_.run(what + " of " + title_, std::move(work), http::TimePoint::max(), Disk::Patience::endless));
}

asio::awaitable<Status> DiskLog::begin() {
  std::string const what = "beginning the log";
  std::function<http::Checked<Status>()> const work = [state = state_] { return state->begin(); };
  co_return co_await run(what, work);
}

asio::awaitable<Result<DiskLog::Appended>> DiskLog::append(std::vector<LogEntry> entries) {
  std::string const what = "writing the log";
  std::function<http::Checked<Result<Appended>>()> const work =
      [state = state_, entries = std::make_shared<std::vector<LogEntry> const>(std::move(entries))] {
        return state->append(*entries);
      };
  co_return co_await run(what, work);
}

asio::awaitable<Status> DiskLog::write_base(ShardSpec spec, std::shared_ptr<ShardImage const> image) {
  std::string const what = "writing a base";
  std::function<http::Checked<Status>()> const work = [state = state_, generation = state_->generation,
                                                       spec = std::move(spec), image = std::move(image)] {
    return state->log.write_base(generation, spec, *image);
  };
  co_return co_await run(what, work);
}

asio::awaitable<void> DiskLog::withdraw() {
  std::string const what = "clearing the log";
  std::function<http::Checked<Status>()> const work = [state = state_] {
    state->log.withdraw();
    return ok();
  };
  static_cast<void>(co_await run(what, work));
}

std::uint64_t DiskLog::bytes() const { return state_->log.bytes(); }

asio::awaitable<Status> DiskLog::remove(Disk& disk, std::string title, std::string directory, std::uint64_t epoch) {
  constexpr std::chrono::minutes patience{1};
  std::function<http::Checked<Status>()> const work = [files = disk.files(), directory = std::move(directory), epoch] {
    return remove_logs(*files, directory, epoch);
  };
  co_return result_of(co_await disk.run("removing the log of " + title, work, steady_clock::now() + patience));
}

}  // namespace chorus::parameters
