// A disk that does not answer: waiting callers get an error, other callers go on, and nothing stays half done.
#include "worker/parameters/disk/disk.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "tests/support/scratch_directory.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using checkpoints::Files;
using checkpoints::InputFile;
using checkpoints::OutputFile;
using chorus::testing::ScratchDirectory;
using http::Checked;
using http::ProblemCode;
using std::chrono::steady_clock;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// Blocks calls on paths with "hung" until it is opened.
class Gate {
 public:
  void pass(std::string const& path) {
    if (path.find("hung") == std::string::npos) return;
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --waiting_;
  }
  void open() {
    std::scoped_lock const lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] int waiting() {
    std::scoped_lock const lock(mutex_);
    return waiting_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool is_open_ = false;
};

class HungOutput final : public OutputFile {
 public:
  HungOutput(std::unique_ptr<OutputFile> file, std::shared_ptr<Gate> gate, std::string path)
      : file_(std::move(file)), gate_(std::move(gate)), path_(std::move(path)) {}
  Status write(std::span<std::byte const> bytes) override { return file_->write(bytes); }
  Status sync() override {
    gate_->pass(path_);
    return file_->sync();
  }

 private:
  std::unique_ptr<OutputFile> file_;
  std::shared_ptr<Gate> gate_;
  std::string path_;
};

// Reads hang when they are opened, writes when they are synced.
class HungFiles final : public Files {
 public:
  explicit HungFiles(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  Status make_directory(std::string const& path) override { return real_->make_directory(path); }
  Result<std::unique_ptr<OutputFile>> create(std::string const& path) override {
    auto file = real_->create(path);
    if (!file) return file.error();
    return std::unique_ptr<OutputFile>(std::make_unique<HungOutput>(std::move(*file), gate_, path));
  }
  Result<std::unique_ptr<InputFile>> open(std::string const& path) override {
    gate_->pass(path);
    return real_->open(path);
  }
  Status rename(std::string const& from, std::string const& to) override { return real_->rename(from, to); }
  Status remove(std::string const& path) override { return real_->remove(path); }
  Result<bool> remove_abandoned(std::string const& path) override { return real_->remove_abandoned(path); }
  Status remove_directory(std::string const& path) override { return real_->remove_directory(path); }
  Status sync_directory(std::string const& path) override { return real_->sync_directory(path); }
  Result<std::vector<std::string>> list(std::string const& path) override { return real_->list(path); }

 private:
  std::unique_ptr<Files> real_ = checkpoints::posix_files();
  std::shared_ptr<Gate> gate_;
};

class World {
 public:
  explicit World(DiskPatience patience = {20ms, 3})
      : disk(io.get_executor(), std::make_shared<HungFiles>(gate), patience) {
    chorus::testing::write_file(here / "fine", "12345678");
    chorus::testing::write_file(here / "hung", "12345678");
  }

  asio::awaitable<Checked<std::uint64_t>> size_of(std::string name, http::TimePoint deadline = http::TimePoint::max()) {
    std::function<Checked<std::uint64_t>()> const work = [files = disk.files(),
                                                          path = here / name]() -> Checked<std::uint64_t> {
      auto const file = files->open(path);
      if (!file) return http::Problem(ProblemCode::unavailable, file.error().detail);
      return (*file)->size();
    };
    co_return co_await disk.run("looking at " + name, work, deadline);
  }
  asio::awaitable<void> until_waiting(int calls) {
    asio::steady_timer timer(io);
    while (gate->waiting() != calls) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  void tell(asio::awaitable<void> story) {
    std::exception_ptr failure;
    asio::co_spawn(io, live(std::move(story)), [&failure](std::exception_ptr thrown) { failure = thrown; });
    io.run();
    if (failure) std::rethrow_exception(failure);
  }

  ScratchDirectory const here;
  std::shared_ptr<Gate> const gate = std::make_shared<Gate>();
  asio::io_context io{1};
  Disk disk;
  std::vector<std::string> left;

 private:
  asio::awaitable<void> live(asio::awaitable<void> story) {
    co_await std::move(story);
    left = co_await disk.stop(steady_clock::now() + (gate->waiting() > 0 ? 20ms : 20s));
  }
};

asio::awaitable<void> give_up(World* world) {
  auto const hung = co_await world->size_of("hung");
  CHECK(hung.has_error());
  if (hung.has_value()) co_return;
  CHECK(hung.error().code == ProblemCode::unavailable);
  CHECK(hung.error().detail.find("open " + (world->here / "hung") + " has not returned for") != std::string::npos);
  CHECK(hung.error().detail.starts_with("looking at hung: "));
  CHECK((co_await world->size_of("fine")).value() == 8);
  CHECK(world->disk.trouble().has_value());
  CHECK(world->disk.longest()->text == "open " + (world->here / "hung") + " (looking at hung)");
  world->gate->open();
  co_await world->disk.settled(http::TimePoint::max());
  CHECK_FALSE(world->disk.trouble().has_value());
  CHECK((co_await world->size_of("hung")).value() == 8);
}

asio::awaitable<void> hang_all_threads(World* world) {
  for (int i = 0; i < 3; ++i) CHECK((co_await world->size_of("hung")).has_error());
  auto const next = co_await world->size_of("fine");
  CHECK(next.has_error());
  if (next.has_value()) co_return;
  CHECK(next.error().code == ProblemCode::unavailable);
  CHECK(next.error().detail.find("all 3 threads for files wait") != std::string::npos);
  world->gate->open();
  co_await world->disk.settled(http::TimePoint::max());
  CHECK((co_await world->size_of("fine")).value() == 8);
}

asio::awaitable<void> miss_the_deadline(World* world) {
  auto const hung = co_await world->size_of("hung", steady_clock::now() + 10ms);
  CHECK(hung.error().code == ProblemCode::deadline_exceeded);
  CHECK(hung.error().detail.find("open " + (world->here / "hung")) != std::string::npos);
  world->gate->open();
}

// Writes "hung-new" under another name, syncs and renames it, and removes it if it cannot finish.
asio::awaitable<Checked<bool>> write_anew(World* world) {
  std::function<Checked<bool>()> const work = [files = world->disk.files(),
                                               path = world->here / "hung-new"]() -> Checked<bool> {
    auto const file = files->create(path + ".partial");
    if (!file) return http::Problem(ProblemCode::unavailable, file.error().detail);
    auto status = (*file)->sync();
    if (status) status = files->rename(path + ".partial", path);
    if (status) return true;
    static_cast<void>(files->remove(path + ".partial"));
    return http::Problem(ProblemCode::unavailable, status.error().detail);
  };
  co_return co_await world->disk.run("writing", work, http::TimePoint::max());
}

asio::awaitable<void> make_nothing_afterwards(World* world) {
  auto const written = co_await write_anew(world);
  CHECK(written.error().code == ProblemCode::unavailable);
  CHECK(std::filesystem::exists(world->here / "hung-new.partial"));
  world->gate->open();
  co_await world->disk.settled(http::TimePoint::max());
  CHECK_FALSE(std::filesystem::exists(world->here / "hung-new.partial"));
  CHECK_FALSE(std::filesystem::exists(world->here / "hung-new"));
}

asio::awaitable<void> hang_for_ever(World* world) {
  CHECK((co_await world->size_of("hung")).has_error());
  CHECK(world->gate->waiting() == 1);
}

asio::awaitable<void> look_at_a_fifo(World* world) {
  auto const fifo = co_await world->size_of("fifo");
  CHECK(fifo.error().code == ProblemCode::unavailable);
  CHECK(fifo.error().detail == (world->here / "fifo") + " is no file");
}

}  // namespace

TEST_CASE("the problem of a file that does not open names it, and other files are read meanwhile") {
  World world;
  world.tell(give_up(&world));
  CHECK(world.left.empty());
}

TEST_CASE("when all threads wait, the next caller gets a problem instead of waiting, too") {
  World world;
  world.tell(hang_all_threads(&world));
}

TEST_CASE("a deadline that is earlier than the patience ends the waiting") {
  World world({std::chrono::hours(1), 3});
  world.tell(miss_the_deadline(&world));
}

TEST_CASE("work that was given up changes nothing when its call returns later, and removes what it made") {
  World world;
  world.tell(make_nothing_afterwards(&world));
}

TEST_CASE("a call that hangs for ever does not delay the end: its thread is left behind, and its call is named") {
  auto gate = std::shared_ptr<Gate>();
  {
    World world;
    gate = world.gate;
    world.tell(hang_for_ever(&world));
    CHECK(world.left.size() == 1);
    CHECK(world.left.front().find("looking at hung: open ") == 0);
  }
  gate->open();  // after the disk was destroyed
}

TEST_CASE("a FIFO is no file, and is not waited for") {
  World world;
  REQUIRE(std::system(("mkfifo " + (world.here / "fifo")).c_str()) == 0);
  world.tell(look_at_a_fifo(&world));
}

}  // namespace chorus::parameters
