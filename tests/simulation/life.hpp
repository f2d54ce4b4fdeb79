// The simulation of one cluster: coordinators, workers and clients run as deployed, while processes are killed, stopped
// and started again, and the network is slow, cut and partitioned. A seed determines all events.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "http/client/client.hpp"
#include "tests/simulation/coordinator_services.hpp"
#include "tests/simulation/machine.hpp"
#include "tests/simulation/model_etcd.hpp"
#include "worker/service/worker.hpp"

namespace chorus::simulation {

// Counts of the events in a life.
struct Tally {
  std::size_t faults = 0;
  std::size_t collectives = 0;  // launched
  std::size_t succeeded = 0;
  std::size_t member_calls = 0;  // that succeeded
  std::size_t repetitions = 0;   // of members' calls without an answer
  std::size_t pushes = 0;        // to parameters, acknowledged
  std::size_t pulls = 0;         // checked against the acknowledged pushes
  std::size_t losses = 0;        // parameters whose only copy was killed
  std::size_t events = 0;        // events that were read
  // Only in lives with several coordinators:
  std::size_t terms = 0;             // leaders
  std::size_t fenced = 0;            // writes of former leaders that etcd refused
  std::size_t refusals = 0;          // requests answered with 503 while no coordinator led
  std::size_t leaderless_calls = 0;  // members' calls that succeeded while no coordinator led

  bool operator==(Tally const&) const = default;
};

// Contribution of worker i, a power of two: a sum identifies its contributors.
inline float contribution(std::size_t index) { return static_cast<float>(1U << index); }
std::string bytes_of(float value, std::size_t elements);
inline std::size_t index_of(std::string_view worker) { return static_cast<std::size_t>(worker.at(1) - '0'); }
// Port of the first coordinator; the others have the following ports.
inline constexpr std::uint16_t coordinator_port = 7070;
inline std::string const coordinator_url = "http://127.0.0.1:" + std::to_string(coordinator_port);

class Life {
 public:
  // `coordinators`: one has a journal in `directory`, several use a modelled etcd. `log`: for the services.
  Life(std::uint64_t seed, std::size_t coordinators, std::string directory, std::shared_ptr<spdlog::logger> log);
  ~Life();
  Life(Life const&) = delete;
  Life& operator=(Life const&) = delete;

  // Runs the life. Returns "", or the promise that was broken.
  std::string live();
  [[nodiscard]] Tally const& tally() const { return tally_; }

  static constexpr std::size_t parameter_clients = 2;
  static constexpr Duration time_of_faults = std::chrono::seconds(20);

 private:
  template <class Service>
  struct Process {
    explicit Process(std::string name) : host(std::move(name)) {}
    Host host;
    std::unique_ptr<Service> service;
    bool has_ended = false;  // stop() has returned
  };
  using WorkerProcess = Process<service::Worker>;
  using CoordinatorProcess = Process<CoordinatorService>;
  using EtcdProcess = Process<ModelEtcd>;
  struct Seat {                              // name and port of a worker, whichever process has them
    std::shared_ptr<WorkerProcess> process;  // null while no process has them
    std::uint32_t lives = 0;
    std::uint64_t y_version = 0;  // of the present process, when last read
    bool is_y_known = false;      // y_version is known and has not changed since
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void start_coordinator(std::size_t index);
  void kill_coordinator(std::size_t index);
  // In failover.cpp:
  [[nodiscard]] std::vector<std::string> etcd_urls() const;
  void start_etcd(std::size_t index);
  void kill_etcd(std::size_t index);
  [[nodiscard]] std::optional<std::size_t> leader() const;
  void kill_leader(TimePoint start_again);
  void hand_over(std::size_t index);
  void coordinator_ended(std::size_t index, CoordinatorProcess const* process);
  void harm_leadership(TimePoint until);
  void harm_etcd(TimePoint until);
  void silence_next_write();
  void stop_until(Host& host, TimePoint until);
  void start_worker(std::size_t index);
  void kill_worker(std::size_t index);
  template <class P>
  void reap(std::shared_ptr<P> process);
  template <class P>
  void bury(P& process);
  // In faults.cpp:
  void plan_faults();
  void fault();
  void do_harm(TimePoint until);
  void silence_all_workers(TimePoint until);
  void end_all_faults();
  Host* some_host();

  // The collectives, in life.cpp and collective_calls.cpp:
  boost::asio::awaitable<void> story();
  void tell_beside(char const* name, boost::asio::awaitable<void> story);
  boost::asio::awaitable<void> launch_on();
  boost::asio::awaitable<void> stand();
  boost::asio::awaitable<bool> launch(std::string id, bool must_succeed);
  boost::asio::awaitable<void> bring_tensors();
  boost::asio::awaitable<void> check_result(boost::json::value record);
  boost::asio::awaitable<void> check_nothing_moved(boost::json::value record);
  boost::asio::awaitable<void> pause(Duration time);
  // The members' calls, in member_calls.cpp. True if all calls succeeded.
  struct MemberCalls;
  boost::asio::awaitable<bool> call_as_members();
  boost::asio::awaitable<void> call_without_coordinator();
  boost::asio::awaitable<bool> call_as(std::vector<std::size_t> members, std::string epoch);
  boost::asio::awaitable<void> call_as_member(std::size_t index, std::shared_ptr<MemberCalls> calls);
  struct Said {
    unsigned status = 0;  // 0: no answer
    std::string body;
    std::string version;
    bool is_unconfirmed = false;
    boost::json::value json;
    [[nodiscard]] std::string text(std::string_view pointer) const;
  };
  boost::asio::awaitable<Said> ask(http::Method method, std::string url, std::string body, Duration patience,
                                   http::Fields fields = {});
  boost::asio::awaitable<Said> ask_over_cuts(http::Method method, std::string url, std::string body);
  boost::asio::awaitable<Said> call_until_answered(std::size_t index, std::string epoch, std::uint64_t sequence);
  // A parameter and its clients, in parameter_calls.cpp:
  struct Pushes {
    using Counts = std::array<std::uint64_t, parameter_clients>;
    Pushes(boost::asio::any_io_executor executor, std::string of) : name(std::move(of)), ended(std::move(executor)) {}
    // Returns "", or the element that lies outside of the two counts.
    [[nodiscard]] std::string wrong(std::string const& bytes, Counts const& least, Counts const& most) const;

    std::string const name;
    Counts begun{}, acknowledged{};
    TimePoint ready_at{};  // when last seen ready
    bool may_be_lost = false, is_lost = false;
    std::size_t pending = 0;  // clients that have not ended
    http::Condition ended;
  };
  void note_kill();
  void note_trouble(TimePoint until);
  boost::asio::awaitable<void> keep_a_parameter();
  boost::asio::awaitable<bool> make_parameter(std::string name);
  boost::asio::awaitable<void> push_on(std::shared_ptr<Pushes> pushes, std::size_t client);
  boost::asio::awaitable<void> pull_on(std::shared_ptr<Pushes> pushes);
  boost::asio::awaitable<void> watch(std::shared_ptr<Pushes> pushes);
  boost::asio::awaitable<void> check_parameter(std::shared_ptr<Pushes> pushes);
  // Checks of promises to the client, in promises.cpp:
  void note_epoch(Said const& answer);
  void note_launch(std::string const& id, Said const& answer);
  boost::asio::awaitable<void> follow_events();
  boost::asio::awaitable<bool> read_events(std::string since, std::vector<std::string>* events);
  boost::asio::awaitable<void> check_launches();
  boost::asio::awaitable<void> check_events();
  [[nodiscard]] std::string worker_url(std::size_t index) const;
  [[nodiscard]] std::string group_body() const;
  void broken(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }

  std::mt19937_64 random_;
  std::string const directory_;
  std::shared_ptr<spdlog::logger> const log_;
  Machine machine_;
  bool const shrinks_;
  std::size_t const elements_;
  std::unique_ptr<EtcdCluster> etcd_;  // null: one coordinator, with a journal
  std::vector<std::shared_ptr<EtcdProcess>> etcd_members_;
  std::vector<std::shared_ptr<CoordinatorProcess>> coordinators_;  // null: killed
  std::vector<Seat> seats_;
  Host client_host_{"client"};
  std::unique_ptr<http::Client> client_;
  std::uint64_t drawn_ = 0;  // random numbers that all coordinators have drawn
  std::size_t journals_ = 0;
  // Killed processes, which reach no other host while they end. Returns true when the service has ended.
  std::vector<std::function<bool()>> graves_;
  bool faults_are_over_ = false;
  bool told_ = false;
  std::shared_ptr<Pushes> pushes_;  // of the present parameter
  TimePoint trouble_until_{};       // until then, earlier faults may still have effects
  std::size_t stories_beside_ = 0;  // clients beside the main story that have not ended
  bool has_launched_ = false;       // the last collective was launched
  bool goes_home_ = false;
  http::Condition story_ended_{client_host_.io.get_executor()};
  std::uint64_t epoch_ = 0;                      // of the group, in the last answer
  std::vector<std::size_t> members_;             // of the group, when last seen ready
  std::string members_epoch_;                    // epoch of the group, when last seen ready
  std::map<std::string, std::string> launches_;  // accepted launches: the final state of each, "" while unknown
  std::vector<std::string> events_;              // in the order in which they were read
  std::string event_log_;
  std::string broken_;
  Tally tally_;
};

}  // namespace chorus::simulation
