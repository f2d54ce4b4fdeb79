// One life of a cluster: a coordinator, its workers and somebody who launches collectives, all of them as they are
// deployed, while processes are killed, stopped and started again, and the network is slow, cut and parted. What
// happens when follows from a seed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "http/client.hpp"
#include "server/coordinator/coordinator.hpp"
#include "tests/simulation/machine.hpp"
#include "worker/service/worker.hpp"

namespace chorus::simulation {

struct Tally {
  std::size_t faults = 0;
  std::size_t collectives = 0;  // launched
  std::size_t succeeded = 0;
};

class Life {
 public:
  // `directory`: for journals. `log`: where the services write theirs.
  Life(std::uint64_t seed, std::string directory, std::shared_ptr<spdlog::logger> log);
  ~Life();
  Life(Life const&) = delete;
  Life& operator=(Life const&) = delete;

  // Empty, or which promise was broken.
  std::string live();
  [[nodiscard]] Tally const& tally() const { return tally_; }

 private:
  template <class Service>
  struct Process {
    explicit Process(std::string name) : host(std::move(name)) {}
    Host host;
    std::unique_ptr<Service> service;
    bool has_ended = false;  // stop() has returned
  };
  using WorkerProcess = Process<service::Worker>;
  using CoordinatorProcess = Process<coordinator::Coordinator>;
  struct Seat {                              // of a worker: its name and port, whichever process has them
    std::shared_ptr<WorkerProcess> process;  // null while nobody has
    std::uint32_t lives = 0;
    std::uint64_t y_version = 0;  // of the present process, as last seen
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void start_coordinator();
  void kill_coordinator();
  void start_worker(std::size_t index);
  void kill_worker(std::size_t index);
  template <class P>
  void bury(std::shared_ptr<P> process);
  void plan_faults();
  void fault();
  void end_all_faults();
  Host* some_host();

  // The story of the client.
  boost::asio::awaitable<void> story();
  boost::asio::awaitable<void> stand();
  boost::asio::awaitable<bool> launch(std::string id, bool must_succeed);
  boost::asio::awaitable<void> bring_tensors();
  boost::asio::awaitable<void> check_result(boost::json::value record);
  boost::asio::awaitable<void> check_nothing_moved(boost::json::value record);
  boost::asio::awaitable<void> pause(Duration time);
  struct Said {
    unsigned status = 0;  // 0: no answer
    std::string body;
    std::string version;
    boost::json::value json;
    [[nodiscard]] std::string text(std::string_view pointer) const;
  };
  boost::asio::awaitable<Said> ask(http::Method method, std::string url, std::string body, Duration patience,
                                   http::Fields fields = {});
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
  std::shared_ptr<CoordinatorProcess> coordinator_;
  std::vector<Seat> seats_;
  Host client_host_{"client"};
  std::unique_ptr<http::Client> client_;
  std::uint64_t drawn_ = 0;  // by the coordinators, whichever lives
  std::size_t journals_ = 0;
  // Processes that were killed: they wind up by themselves, and reach nobody. True: its service has ended.
  std::vector<std::function<bool()>> graves_;
  bool faults_are_over_ = false;
  bool told_ = false;
  std::string broken_;
  Tally tally_;
};

}  // namespace chorus::simulation
