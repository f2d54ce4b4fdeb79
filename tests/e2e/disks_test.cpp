// Disks that hang and disks that are full, under real processes: waiting clients are told what is wrong, half-written
// files are removed, and everything else goes on.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/faults/hanging_disk.hpp"
#include "tests/support/faults/small_disk.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;

namespace {

namespace files = std::filesystem;
using Floats = std::vector<float>;
using std::chrono::steady_clock;
using std::chrono_literals::operator""s;

std::vector<std::string> paths_below(std::string const& directory) {
  std::vector<std::string> paths;
  for (auto const& entry : files::recursive_directory_iterator(directory)) paths.push_back(entry.path().string());
  return paths;
}

// A coordinator and one worker, "w0", in group "g".
class Shop {
 public:
  Shop(std::vector<std::string> const& worker_flags, HangingDisk const* disk = nullptr)
      : coordinator("coordinator", {binary("chorus-coordinator"), "--port", "0", "--log-level", "error"}) {
    start(worker_flags, disk);
    auto const group = coordinator.put("/v1/groups/g", R"({"size":1})");
    REQUIRE_MESSAGE(group.status == 201, group.body);
  }
  void start(std::vector<std::string> const& worker_flags, HangingDisk const* disk = nullptr) {
    std::vector<std::string> arguments{
        binary("chorus-worker"), "--port", "0",           "--coordinator", coordinator.url, "--id", "w0",
        "--disk-patience-ms",    "300",    "--log-level", "error",         "--drain-ms",    "1000"};
    arguments.insert(arguments.end(), worker_flags.begin(), worker_flags.end());
    worker_ = std::make_unique<Service>("w0", disk != nullptr ? disk->under(arguments) : arguments);
    REQUIRE(eventually([&] { return worker().get("/readyz").status == 200; }));
  }
  Service& worker() { return *worker_; }

  Answer make(std::string const& name, std::string const& request) const {
    return coordinator.put("/v1/parameters/" + name, request);
  }
  Answer checkpoint(std::string const& name, std::string const& parameter) const {
    return coordinator.post("/v1/checkpoints", R"({"name":")" + name + R"(","parameters":[")" + parameter + R"("]})");
  }
  Floats values(std::string const& parameter) {
    auto const answer = ParameterClient(worker().url, "reader").pull(parameter);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return ParameterClient::values<float>(answer.body);
  }
  // Checks that SIGTERM ends the worker soon.
  void ends_when_told() {
    auto const begun = steady_clock::now();
    worker().process.signal(SIGTERM);
    CHECK(worker().process.wait(20s) == 0);
    CHECK(steady_clock::now() - begun < 15s);
  }

  Service coordinator;

 private:
  std::unique_ptr<Service> worker_;
};

std::string doctor(Shop& shop) {
  Process process({binary("chorus"), "--coordinator", shop.coordinator.url, "doctor"});
  return process.read_all();
}

constexpr char const* small = R"({"group":"g","shape":[1000]})";

}  // namespace

TEST_CASE(
    "a checkpoint file that is a FIFO is refused by name, and neither other checkpoints nor SIGTERM wait for it") {
  ScratchDirectory const disk;
  files::create_directory(disk / "c");
  Shop shop({"--checkpoint-directory", disk / "c"});
  REQUIRE(shop.make("w", small).status == 201);
  REQUIRE(shop.checkpoint("c", "w").status == 201);
  auto const file = disk / "c/c/checkpoint-000000000001/w0.safetensors";
  files::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  auto const begun = steady_clock::now();
  auto const restored = shop.make("v", R"({"group":"g","shape":[1000],"checkpoint":{"name":"c","number":1}})");
  CHECK(restored.code() == "digest_mismatch");
  CHECK_MESSAGE(mentions(restored.body, file + " is no file"), restored.body);
  CHECK(steady_clock::now() - begun < 10s);
  CHECK(shop.checkpoint("d", "w").status == 201);
  shop.ends_when_told();
}

TEST_CASE("on a disk that hangs a restore is given up by name, other disks go on, and SIGTERM ends the worker") {
  if (under_sanitizer()) return;  // the preloaded library would come before the sanitizer
  ScratchDirectory const disk;
  files::create_directories(disk / "root");
  HangingDisk const hanging(disk / "root/hung", CHORUS_HANGING_DISK);
  Shop shop({"--checkpoint-directory", disk / "root"}, &hanging);
  REQUIRE(shop.make("w", small).status == 201);
  REQUIRE(shop.checkpoint("hung", "w").status == 201);
  CHECK(mentions(doctor(shop), "healthy"));
  hanging.hang();
  auto const begun = steady_clock::now();
  auto const restored = shop.make("v", R"({"group":"g","shape":[1000],"checkpoint":{"name":"hung"}})");
  CHECK_MESSAGE(restored.status == 503, restored.body);
  CHECK_MESSAGE(mentions(restored.body, "has not returned for"), restored.body);
  CHECK_MESSAGE(mentions(restored.body, disk / "root/hung"), restored.body);
  CHECK(steady_clock::now() - begun < 10s);
  auto const ready = shop.worker().get("/readyz");
  CHECK(ready.status == 503);
  CHECK(mentions(ready.body, "the disk does not answer"));
  CHECK(shop.worker().metric(R"(chorus_disk_wait_seconds{disk="checkpoints"})") >= 0.3);
  auto const said = doctor(shop);
  CHECK_MESSAGE(mentions(said, "worker w0: it is not ready: of checkpoints, the disk does not answer"), said);
  CHECK(shop.checkpoint("other", "w").status == 201);
  shop.ends_when_told();
}

TEST_CASE("a disk that hung and answers again is used as before") {
  if (under_sanitizer()) return;
  ScratchDirectory const disk;
  files::create_directories(disk / "root");
  HangingDisk const hanging(disk / "root", CHORUS_HANGING_DISK);
  Shop shop({"--checkpoint-directory", disk / "root"}, &hanging);
  REQUIRE(shop.make("w", small).status == 201);
  hanging.hang();
  auto const refused = shop.checkpoint("c", "w");
  CHECK_MESSAGE(refused.status == 503, refused.body);
  hanging.answer();
  CHECK(eventually([&] { return shop.worker().get("/readyz").status == 200; }));
  auto const taken = shop.checkpoint("c", "w");
  CHECK_MESSAGE(taken.status == 201, taken.body);
  for (auto const& path : paths_below(disk / "root")) CHECK_FALSE(path.ends_with(".partial"));
}

TEST_CASE("a checkpoint that does not fit leaves no file, and a small one still fits afterwards") {
  SmallDisk const disk;
  if (!disk.is_there()) return;
  Shop shop({"--checkpoint-directory", disk.path()});
  REQUIRE(shop.make("small", R"({"group":"g","shape":[400000]})").status == 201);
  REQUIRE(shop.make("large", R"({"group":"g","shape":[4000000]})").status == 201);
  REQUIRE(shop.checkpoint("s", "small").status == 201);
  for (int i = 0; i < 3; ++i) {
    auto const refused = shop.checkpoint("l", "large");
    CHECK(refused.status == 503);
    CHECK_MESSAGE(mentions(refused.body, "No space left on device"), refused.body);
    CHECK_FALSE(files::exists(disk.path() + "/l"));
  }
  CHECK(shop.checkpoint("s", "small").status == 201);
}

TEST_CASE("a worker that starts again removes the half-written files of its killed process, and no files of others") {
  if (under_sanitizer()) return;
  ScratchDirectory const disk;
  files::create_directories(disk / "root");
  HangingDisk const hanging(disk / "root/c/checkpoint-000000000001/w0", CHORUS_HANGING_DISK);
  std::vector<std::string> const flags{"--checkpoint-directory", disk / "root"};
  Shop shop(flags, &hanging);
  REQUIRE(shop.make("w", small).status == 201);
  // A file of another worker, which is alive.
  files::create_directories(disk / "root/other/checkpoint-000000000001");
  auto const others = disk / "root/other/checkpoint-000000000001/o.safetensors.partial";
  auto const writer = ::open(others.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(::flock(writer, LOCK_EX) == 0);
  hanging.hang();
  CHECK(shop.checkpoint("c", "w").status == 503);
  write_file(disk / "root/c/checkpoint-000000000001/v9.safetensors.partial", "of a worker that died");
  shop.worker().process.signal(SIGKILL);
  shop.worker().process.wait();
  hanging.answer();
  shop.start(flags);
  CHECK(eventually([&] { return !files::exists(disk / "root/c"); }));
  CHECK(files::exists(others));
  ::close(writer);
}

TEST_CASE("on a full disk of logs a push is refused at once, and counts once when there is room") {
  SmallDisk const disk;
  if (!disk.is_there()) return;
  Shop shop({"--log-directory", disk.path()});
  REQUIRE(shop.make("w", R"({"group":"g","shape":[100000],"durability":"log"})").status == 201);
  ParameterClient client(shop.worker().url, "c");
  auto const ones = ParameterClient::bytes(Floats(100000, 1));
  REQUIRE(client.push("w", ones).status == 200);
  disk.fill();
  auto const begun = steady_clock::now();
  for (int i = 0; i < 2; ++i) {
    auto const refused = client.push("w", ones);
    CHECK(refused.status == 503);
    CHECK_MESSAGE(mentions(refused.body, "No space left on device"), refused.body);
    CHECK_MESSAGE(mentions(refused.body, disk.path()), refused.body);
  }
  CHECK(steady_clock::now() - begun < 10s);
  auto const ready = shop.worker().get("/readyz");
  CHECK(ready.status == 503);
  CHECK_MESSAGE(mentions(ready.body, "No space left on device"), ready.body);
  CHECK(mentions(doctor(shop), "No space left on device"));
  disk.make_room();
  CHECK(eventually([&] { return client.push("w", ones).status == 200; }, 30s));
  CHECK(shop.worker().get("/readyz").status == 200);
  CHECK(shop.values("w") == Floats(100000, 2));
  // One of the many attempted bases is left, with its log.
  CHECK(eventually([&] { return paths_below(disk.path()).size() == 4; }));
}

TEST_CASE("on a disk of logs that hangs a push gets the reason at its deadline, and counts once afterwards") {
  if (under_sanitizer()) return;
  ScratchDirectory const disk;
  files::create_directories(disk / "logs");
  HangingDisk const hanging(disk / "logs", CHORUS_HANGING_DISK);
  Shop shop({"--log-directory", disk / "logs"}, &hanging);
  REQUIRE(shop.make("w", R"({"group":"g","shape":[1000],"durability":"log"})").status == 201);
  ParameterClient const client(shop.worker().url, "c");
  auto const ones = ParameterClient::bytes(Floats(1000, 1));
  hanging.hang();
  auto const push = [&] {
    return client.post("/v1/parameters/w/gradient?timeout_ms=1000", ones,
                       {{"Chorus-Client", "c"}, {"Chorus-Sequence", "0"}});
  };
  for (int i = 0; i < 2; ++i) {
    auto const refused = push();
    CHECK(refused.status == 503);
    CHECK_MESSAGE(mentions(refused.body, "sync " + (disk / "logs")), refused.body);
  }
  CHECK(mentions(shop.worker().get("/readyz").body, "of logs of pushes, the disk does not answer"));
  hanging.answer();
  CHECK(eventually([&] { return push().status == 200; }));
  CHECK(shop.values("w") == Floats(1000, 1));
  hanging.hang();
  shop.ends_when_told();
}

TEST_CASE(
    "on a journal whose disk hangs a launch ends by its timeout, /readyz says why, and SIGTERM ends the coordinator") {
  if (under_sanitizer()) return;
  ScratchDirectory const disk;
  files::create_directories(disk / "journal");
  HangingDisk const hanging(disk / "journal", CHORUS_HANGING_DISK);
  Service coordinator("coordinator", hanging.under({binary("chorus-coordinator"), "--port", "0", "--journal",
                                                    disk / "journal/j", "--drain-ms", "1000", "--log-level", "error"}));
  Service worker("w0", {binary("chorus-worker"), "--port", "0", "--coordinator", coordinator.url, "--id", "w0",
                        "--log-level", "error"});
  REQUIRE(eventually([&] { return worker.get("/readyz").status == 200; }));
  REQUIRE(coordinator.put("/v1/groups/g", R"({"size":1})").status == 201);
  REQUIRE(worker.put_tensor("x", "f32", std::vector<float>{1, 2}).status == 201);
  auto const launch = [&](std::string const& id) {
    return coordinator.put("/v1/collectives/" + id + "?wait=30s",
                           R"({"group":"g","op":"all_reduce","tensor":"x","timeout_ms":1000})");
  };
  REQUIRE(launch("a").json().at("state") == "succeeded");
  hanging.hang();
  auto const begun = steady_clock::now();
  auto const late = launch("b");
  CHECK(steady_clock::now() - begun < 4s);
  CHECK_MESSAGE(mentions(late.body, "deadline_exceeded"), late.body);
  CHECK_MESSAGE(mentions(late.body, disk / "journal/j"), late.body);
  CHECK(worker.tensor_version("x") == 2);
  CHECK(eventually([&] { return coordinator.get("/readyz").status == 503; }, 20s));
  CHECK(coordinator.metric("chorus_ready") == 0);
  auto const ready = coordinator.get("/readyz");
  CHECK_MESSAGE(mentions(ready.body, "the disk does not answer"), ready.body);
  CHECK(coordinator.metric(R"(chorus_disk_wait_seconds{disk="journal"})") >= 5);
  CHECK(launch("c").status == 503);
  CHECK(coordinator.get("/v1/groups/g").status == 200);
  hanging.answer();
  CHECK(eventually([&] { return coordinator.get("/readyz").status == 200; }));
  CHECK(coordinator.metric("chorus_ready") == 1);
  CHECK(launch("d").json().at("state") == "succeeded");
  CHECK(worker.tensor_version("x") == 3);
  hanging.hang();
  coordinator.process.signal(SIGTERM);
  CHECK(coordinator.process.wait(20s) == 0);
}
