// Parameters of a GiB, or of the size that fits, are made, pushed to, pulled, written to checkpoints and logs,
// restored, moved, copied to a backup and deleted, and no heartbeat waits meanwhile.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fstream>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/liveness.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t mebi = 1 << 20;
constexpr double most_late_turns = 0.01;
constexpr auto longest_allowed = 1s;  // the lease

// Processor time in which this machine sends so many bytes over a connection and receives them, from and to memory that
// the caches do not hold.
std::chrono::milliseconds time_to_move(std::uint64_t bytes) {
  using boost::asio::ip::tcp;
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket sender(context), receiver(context);
  sender.connect(acceptor.local_endpoint());
  acceptor.accept(receiver);
  sender.non_blocking(true);
  static constexpr std::uint64_t piece = 256 << 10;
  std::vector<char> from(64 * mebi, 'a'), to(64 * mebi, 'b');
  auto const place = [](std::vector<char>& in, std::uint64_t at) {
    auto const offset = at % in.size();
    return boost::asio::buffer(in.data() + offset, std::min(piece, in.size() - offset));
  };
  auto const thread = static_cast<pid_t>(::syscall(SYS_gettid));
  auto const begin = times_of(::getpid(), thread).ran;
  for (std::uint64_t sent = 0, received = 0; received < bytes;) {
    sent += sender.write_some(place(from, sent));
    while (received < sent) received += receiver.read_some(place(to, received));
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(times_of(::getpid(), thread).ran - begin);
}

// What a control thread may run during one answer: bodies pass through it in pieces, between which it looks for other
// work. 50 ms, or the time of 256 MiB on a machine where that is longer.
std::chrono::milliseconds most_work() { return std::max<std::chrono::milliseconds>(50ms, time_to_move(256 * mebi)); }

// Size of the values. Adam, a gradient and the images of checkpoints and moves, or a backup, together need eight times
// as much. At most CHORUS_LARGE_MIB, by default a GiB, so that the test ends in time on a slow machine.
std::uint64_t value_bytes() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kibi = 0;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:") file >> kibi;
  return std::clamp(kibi / 1024 / 10, std::uint64_t{32}, number_from_environment("CHORUS_LARGE_MIB", 1024)) * mebi;
}

std::unique_ptr<httplib::Client> client_of(Service const& service) {
  auto client = std::make_unique<httplib::Client>(service.url);
  client->set_read_timeout(300s);
  client->set_write_timeout(300s);
  return client;
}

std::string push(Service const& worker, std::string const& parameter, std::uint64_t sequence, std::uint64_t bytes) {
  std::string const zeros(mebi, '\0');
  httplib::Headers const fields{{"Chorus-Client", "c"}, {"Chorus-Sequence", std::to_string(sequence)}};
  auto const send = [&](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
    static_cast<void>(offset);
    return sink.write(zeros.data(), std::min(length, zeros.size()));
  };
  auto const answer = client_of(worker)->Post("/v1/parameters/" + parameter + "/gradient?timeout_ms=300000", fields,
                                              bytes, send, "application/octet-stream");
  return answer ? std::to_string(answer->status) : httplib::to_string(answer.error());
}

// Returns the number of received bytes.
std::uint64_t pull(Service const& worker, std::string const& parameter) {
  std::uint64_t bytes = 0;
  auto const take = [&](char const*, std::size_t length) {
    bytes += length;
    return true;
  };
  auto const answer = client_of(worker)->Get("/v1/parameters/" + parameter + "/value?timeout_ms=300000", take);
  return answer && answer->status == 200 ? bytes : 0;
}

struct Fleet {
  Fleet() : coordinator("coordinator", {binary("chorus-coordinator"), "--port", "0", "--lease-ms", "1000"}) {
    std::filesystem::create_directory(disk / "checkpoints");
    for (std::string const id : {"w0", "w1", "idle"}) {
      std::filesystem::create_directory(disk / id);
      workers.push_back(std::make_unique<Service>(
          id, std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator.url, "--id",
                                       id, "--locality", "host=h", "--checkpoint-directory", disk / "checkpoints",
                                       "--log-directory", disk / id, "--fill-bytes-per-second", "4294967296"}));
    }
    REQUIRE(eventually([&] { return group(R"({"workers":["w0"]})") / 100 == 2; }));
  }
  [[nodiscard]] int group(std::string const& request) const { return coordinator.put("/v1/groups/g", request).status; }
  void make(std::string const& name, std::string const& request) const {
    auto const answer = client_of(coordinator)->Put("/v1/parameters/" + name, request, "application/json");
    REQUIRE(answer);
    REQUIRE_MESSAGE(answer->status == 201, answer->body);
  }
  // True if the coordinator has ever lost the worker.
  [[nodiscard]] bool was_lost(std::size_t i) const {
    return workers[i]->metric("chorus_lease_renewals_total{result=\"forgotten\"") > 0;
  }
  // Returns the fraction of the timers of the control thread that fired at least 50 ms late, as the service reports.
  [[nodiscard]] static double late_turns(Service const& service) {
    auto const all = service.metric("chorus_event_loop_lag_seconds_count");
    REQUIRE(all > 0);
    return 1 - service.metric("chorus_event_loop_lag_seconds_bucket{le=\"0.1024\"") / all;
  }

  ScratchDirectory const disk;
  Service coordinator;
  std::vector<std::unique_ptr<Service>> workers;
};

}  // namespace

TEST_CASE("parameters of up to a GiB delay no control thread and lose no lease") {
  auto const bytes = value_bytes();
  auto const work = most_work();
  MESSAGE("values of " << bytes / mebi << " MiB, and adam's state of twice as many; answers within " << work.count()
                       << " ms of work");
  Fleet f;
  auto const shape = R"({"group":"g","shape":[)" + std::to_string(bytes / 4 / 1024) + R"(,1024],"nonfinite":"reject")" +
                     R"(,"optimizer":{"name":"adam"})";
  Liveness liveness({&f.coordinator, f.workers[0].get(), f.workers[1].get()});
  auto const checkpoint = [&] {
    auto const made = client_of(f.coordinator)->Post("/v1/checkpoints", R"({"name":"c"})", "application/json");
    REQUIRE(made);
    CHECK_MESSAGE(made->status == 201, made->body);
  };

  liveness.now_during("making it");
  f.make("w", shape + "}");
  liveness.now_during("a push");
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) CHECK(push(*f.workers[0], "w", sequence, bytes) == "200");
  liveness.now_during("a pull");
  CHECK(pull(*f.workers[0], "w") == bytes);
  liveness.now_during("a checkpoint");
  checkpoint();
  liveness.now_during("deletion");
  CHECK(f.coordinator.erase("/v1/parameters/w").status == 204);
  liveness.wait_for_rounds(100);
  liveness.now_during("restoring it");
  f.make("w", shape + R"(,"checkpoint":{"name":"c"}})");
  liveness.now_during("a move");
  CHECK(f.group(R"({"workers":["w1"]})") / 100 == 2);
  auto const has_moved = [&] {
    auto const seen = f.coordinator.get("/v1/parameters/w").json();
    auto const& endpoints = seen.at("endpoints").as_array();
    auto const is_there = [](auto const& endpoint) { return endpoint.at("worker") == "w1"; };
    return std::ranges::all_of(endpoints, is_there) && seen.at("state") == "ready";
  };
  CHECK(eventually(has_moved, 300s));
  CHECK(push(*f.workers[1], "w", 2, bytes) == "200");
  CHECK(f.coordinator.erase("/v1/parameters/w").status == 204);
  liveness.now_during("a log");
  f.make("l", shape + R"(,"durability":"log"})");
  CHECK(push(*f.workers[1], "l", 0, bytes) == "200");
  CHECK(f.coordinator.erase("/v1/parameters/l").status == 204);
  liveness.wait_for_rounds(100);
  liveness.now_during("a backup");
  CHECK(f.group(R"({"workers":["w0","w1"]})") / 100 == 2);
  f.make("b", shape + R"(,"shards":1,"replicas":2})");
  auto const has_backup = [&] {
    auto const seen = f.coordinator.get("/v1/parameters/b").json();
    return seen.at("state") == "ready" && seen.at("endpoints").as_array().size() == 2;
  };
  CHECK(eventually(has_backup, 300s));
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) CHECK(push(*f.workers[0], "b", sequence, bytes) == "200");
  CHECK(pull(*f.workers[1], "b") == bytes);
  CHECK(f.coordinator.erase("/v1/parameters/b").status == 204);
  liveness.wait_for_rounds(100);

  // A single late answer is tolerated, unless the control thread's own work was the reason: on a loaded machine, and in
  // a virtual one, the thread and any holder of a lock that it needs lose their processor for up to 200 ms.
  check_liveness(liveness, longest_allowed, work);
  CHECK(f.late_turns(f.coordinator) < most_late_turns);
  CHECK(f.late_turns(*f.workers[0]) < most_late_turns);
  CHECK(f.late_turns(*f.workers[1]) < most_late_turns);
  if (f.was_lost(2)) {
    MESSAGE("an idle worker was lost, too: the machine is too busy for leases of a second");
    return;
  }
  CHECK_FALSE(f.was_lost(0));
  CHECK_FALSE(f.was_lost(1));
}
