// One coordinator with the leases of thousands of workers, and with as many connections as it accepts. The workers are
// simulated here; their messages go over loopback as real ones do.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/process_size.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int agents_count = 5000;
constexpr int callers = 4;  // threads that act for the agents

double cpu_seconds(Process const& process) {
  std::ifstream stat("/proc/" + std::to_string(process.pid()) + "/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_mib(Process const& process) { return static_cast<double>(size_of(process).resident_kib) / 1024; }

// Answers the coordinator's check of the address of a joining worker, and accepts as many connections as the
// coordinator makes: it keeps one to every worker.
class Address {
 public:
  Address() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_, 1024) == 0);
    REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    watch(listener_);
    thread_ = std::thread([this] { serve(); });
  }
  ~Address() {
    ::shutdown(listener_, SHUT_RDWR);  // makes it readable, and accept fail
    thread_.join();
    for (int const connection : connections_) ::close(connection);
    ::close(listener_);
    ::close(epoll_);
  }
  Address(Address const&) = delete;
  Address& operator=(Address const&) = delete;
  // Returns the number of requests other than for health.
  [[nodiscard]] int further_requests() const { return further_requests_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  void watch(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
  }

  void serve() {
    for (;;) {
      epoll_event event{};
      if (::epoll_wait(epoll_, &event, 1, -1) != 1) continue;
      int const ready = event.data.fd;
      if (ready != listener_) {
        answer(ready);
        continue;
      }
      int const accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted < 0) return;
      connections_.insert(accepted);
      watch(accepted);
    }
  }

  // Takes a request of the coordinator to arrive in one piece.
  void answer(int connection) {
    std::array<char, 4096> request;
    auto const received = ::recv(connection, request.data(), request.size(), 0);
    if (received <= 0) {
      connections_.erase(connection);
      ::close(connection);
      return;
    }
    std::string_view const text(request.data(), static_cast<std::size_t>(received));
    if (!text.starts_with("GET /livez ")) ++further_requests_;
    constexpr std::string_view alive = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
    ::send(connection, alive.data(), alive.size(), MSG_NOSIGNAL);
  }

  int const listener_, epoll_;
  int port_ = 0;
  std::atomic<int> further_requests_{0};
  std::set<int> connections_;  // used by the thread, and by the destructor after it
  std::thread thread_;
};

// Calls act(client, agent) for every agent, from several threads. Returns the number of calls that returned true.
template <class Act>
int for_all_agents(std::string const& url, Act act) {
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      httplib::Client client(url);
      client.set_keep_alive(true);
      client.set_tcp_nodelay(true);
      for (int agent = caller; agent < agents_count; agent += callers)
        if (act(client, agent)) ++right;
    });
  for (auto& thread : threads) thread.join();
  return right;
}

bool join(httplib::Client& client, int agent, std::string const& address) {
  auto const body = R"({"id":"a)" + std::to_string(agent) + R"(","incarnation":"0123456789abcdef","url":")" + address +
                    R"(","locality":{"region":"","zone":"","rack":"","host":"h0"},"version":"0.1.0"})";
  auto const answer = client.Post("/v1/workers", body, "application/json");
  return answer && answer->status == 201;
}

bool renew(httplib::Client& client, int agent) {
  auto const path = "/v1/workers/a" + std::to_string(agent) + "/lease";
  auto const answer = client.Put(path, R"({"incarnation":"0123456789abcdef"})", "application/json");
  return answer && answer->status == 200;
}

// Returns the number of connections that a service accepts, computed as in base/runtime/environment.
std::size_t connections_taken() {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return std::min<std::size_t>(16384, limit.rlim_max / 2);
}

}  // namespace

TEST_CASE("five thousand workers hold their leases at one coordinator with less than one core") {
  // This process needs as many descriptors for the coordinator's connections.
  CHECK(connections_taken() > agents_count);
  Cluster cluster(0, {}, {"--lease-ms", "15000"});
  auto& coordinator = cluster.coordinator;
  Address const address;
  auto const url = address.url();
  auto const empty_mib = resident_mib(coordinator.process);
  auto const begun = Clock::now();
  CHECK(for_all_agents(coordinator.url, [&](auto& client, int agent) { return join(client, agent, url); }) ==
        agents_count);
  auto const joined = Clock::now();
  auto const cpu_before = cpu_seconds(coordinator.process);
  // Each agent renews three times in a lease.
  int rounds = 0;
  auto slowest = Clock::duration::zero();
  for (auto next = joined; rounds < 3; ++rounds) {
    CHECK(for_all_agents(coordinator.url, [](auto& client, int agent) { return renew(client, agent); }) ==
          agents_count);
    auto const asked = Clock::now();
    CHECK(coordinator.get("/healthz").status == 200);
    slowest = std::max(slowest, Clock::now() - asked);
    next += 5s;
    std::this_thread::sleep_until(next);  // the pace is the load
  }
  auto const seconds = std::chrono::duration<double>(Clock::now() - joined).count();
  auto const share = (cpu_seconds(coordinator.process) - cpu_before) / seconds;
  auto const mib = resident_mib(coordinator.process);
  std::cout << agents_count << " workers joined in " << std::chrono::duration<double>(joined - begun).count() << " s; "
            << rounds * agents_count / seconds << " renewals a second take " << share * 100 << " % of a core; resident "
            << mib << " MiB, " << empty_mib << " before; slowest /healthz "
            << std::chrono::duration<double, std::milli>(slowest).count() << " ms" << std::endl;
  CHECK(share < 1);
  // Each agent gets at most one request, for a measurement of its links. No worker is asked about parameters.
  CHECK(address.further_requests() <= agents_count);
  CHECK((under_sanitizer() || mib - empty_mib < 100));
  CHECK(coordinator.metric("chorus_members{state=\"ready\"}") == agents_count);
}

TEST_CASE("health answers beside as many idle connections as a service accepts, and beside more") {
  auto const limit = connections_taken();
  Cluster cluster(0);
  auto& coordinator = cluster.coordinator;
  auto const empty_mib = resident_mib(coordinator.process);
  std::vector<std::unique_ptr<RawConnection>> idle;
  auto const held = limit - 8;
  for (std::size_t i = 0; i < held; ++i) idle.push_back(std::make_unique<RawConnection>(coordinator.port()));
  REQUIRE(eventually([&] { return coordinator.metric("chorus_http_connections") >= static_cast<double>(held); }, 60s));
  CHECK(coordinator.get("/healthz").status == 200);
  auto const mib = resident_mib(coordinator.process);
  std::cout << held << " idle connections: resident " << mib << " MiB, " << empty_mib << " before" << std::endl;
  CHECK((under_sanitizer() || mib - empty_mib < 400));

  for (std::size_t i = held; i < limit; ++i) idle.push_back(std::make_unique<RawConnection>(coordinator.port()));
  Answer refused;
  CHECK(eventually([&] {
    refused = coordinator.get("/v1/workers");
    return refused.status == 503;
  }));
  CHECK(refused.code() == "unavailable");
  CHECK(refused.header("Retry-After") == "1");
  CHECK(coordinator.get("/healthz").status == 200);
  idle.front()->send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(status_of(idle.front()->read_answer(5s)) == 200);
  idle.clear();
  CHECK(eventually([&] { return coordinator.get("/healthz").status == 200; }));
}

// A thousand launches a minute for CHORUS_LOAD_SECONDS. Stored history (1000 records, 10,000 events) fills in the first
// three minutes, and the memory of allocators grows with it: nothing grows after that.
TEST_CASE("a thousand collectives a minute on eight workers make neither memory nor descriptors grow") {
  constexpr std::size_t workers_count = 8;
  constexpr auto pace = 60ms;
  auto const seconds = std::chrono::seconds(number_from_environment("CHORUS_LOAD_SECONDS", 20));
  Cluster cluster(workers_count);
  cluster.make_group("g");
  for (std::size_t i = 0; i < workers_count; ++i)
    REQUIRE(cluster.worker(i).put_tensor("x", "f32", std::vector<float>(16384, 1)).status == 201);
  // Links are dialed when first needed; here each rank needs all.
  auto const dialed =
      cluster.run({{"group", "g"}, {"tensor", "x"}, {"output", "z"}, {"op", "all_to_all"}, {"algorithm", "direct"}});
  REQUIRE(dialed.at("state") == "succeeded");
  std::vector<std::pair<std::string, Process const*>> processes{{"coordinator", &cluster.coordinator.process}};
  for (std::size_t i = 0; i < workers_count; ++i)
    processes.emplace_back(cluster.worker(i).id, &cluster.worker(i).process);

  std::array const bodies{
      R"({"group":"g","tensor":"x","output":"y"})", R"({"group":"g","tensor":"x","output":"y","op":"reduce"})",
      R"({"group":"g","tensor":"x","output":"y","op":"all_gather"})", R"({"group":"g","op":"barrier"})"};
  std::vector<ProcessSize> before;
  std::size_t launched = 0, succeeded = 0;
  std::vector<double> taken_ms;
  auto const begun = Clock::now();
  for (auto next = begun; next < begun + seconds; next += pace, ++launched) {
    std::this_thread::sleep_until(next);  // the pace is the load
    auto const asked = Clock::now();
    auto const answer = cluster.coordinator.post("/v1/collectives?wait=30s", bodies[launched % bodies.size()]);
    taken_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - asked).count());
    if (answer.status == 200 && answer.json().at("state") == "succeeded") ++succeeded;
    if (before.empty() && next - begun > seconds * 3 / 10)
      for (auto const& [name, process] : processes) before.push_back(size_of(*process));
  }
  CHECK(succeeded == launched);
  std::ranges::sort(taken_ms);
  std::cout << launched << " collectives in " << seconds.count() << " s, median " << taken_ms[taken_ms.size() / 2]
            << " ms, slowest " << taken_ms.back() << " ms" << std::endl;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    auto const& [name, process] = processes[i];
    auto const after = size_of(*process);
    std::cout << name << ": resident " << before[i].resident_kib << " KiB, " << after.resident_kib
              << " at the end; descriptors " << before[i].descriptors << ", " << after.descriptors << "; threads "
              << before[i].threads << ", " << after.threads << std::endl;
    CHECK(after.descriptors <= before[i].descriptors + 2);  // a connection of a client, or of the test
    CHECK(after.threads == before[i].threads);
    CHECK((under_sanitizer() || after.resident_kib < before[i].resident_kib + (seconds > 300s ? 2048 : 16384)));
  }
}
