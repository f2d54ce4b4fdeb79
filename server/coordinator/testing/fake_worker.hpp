// A worker without a data plane that answers as the test tells it, and a world of such workers around a coordinator,
// all on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/server/server.hpp"
#include "server/coordinator/coordinator.hpp"

namespace chorus::coordinator {

class FakeWorker {
 public:
  FakeWorker(boost::asio::any_io_executor executor, std::string id, std::uint64_t incarnation = 1);

  struct Tensor {
    std::string dtype = "f32";
    std::string shape = "4";
    std::uint64_t version = 1;
    std::string device = "cpu";
  };
  std::map<std::string, Tensor> tensors;

  // Behaviour of runs. Held runs wait for release() or for their DELETE.
  bool hold_runs = false;
  std::optional<http::Problem> fail_runs;
  std::optional<http::Problem> refuse_commits;
  bool repeats_commits = false;  // a repeated commit returns the version; otherwise it is unknown
  std::string digest = "00000000000000dd";
  double seconds = 0.001;                            // reported time of its part of a run
  std::map<std::string, std::uint32_t> epochs_seen;  // by group: assignments up to this epoch are fenced
  bool deaf_to_heads = false;                        // takes the requests, and never answers
  bool deaf_to_runs = false;
  std::optional<http::Problem> refuse_looks;  // at runs
  std::vector<std::uint32_t> waits_for;       // reported by held runs at their deadline

  std::vector<api::RunRequest> runs;     // in the order of arrival
  std::vector<api::RunRequest> refused;  // runs whose tensor was not at the version that they named
  std::size_t looks = 0;                 // number of HEAD requests for a tensor
  std::vector<std::uint64_t> committed, dropped;
  std::vector<api::GroupAssignment> assignments;
  std::size_t probes = 0;

  // Shards by parameter and number, as assigned last; backups are complete at once.
  std::map<std::pair<std::string, std::uint32_t>, api::ShardAssignment> shards;
  bool deaf_to_shards = false;
  bool is_slow_with_shards = false;         // does not take assignments yet
  std::size_t drops = 0;                    // DELETEs of shards
  bool has_lost_shards = false;             // refuses to own shards
  bool has_no_gpu = false;                  // refuses shards on a GPU
  bool has_incomplete_backups = false;      // reports its backups as incomplete
  bool fills_nobody = false;                // does not fill the backups of its shards
  bool is_unconfirmed = false;              // reports its own shards as unconfirmed
  bool takes_shards_silently = false;       // takes assignments, and never answers
  std::optional<http::Problem> why_no_log;  // refuses to own shards with a log
  std::size_t log_refusals = 0;
  bool takes_one_at_a_time = false;           // like workers of earlier releases
  std::vector<std::size_t> orders_at_a_time;  // per POST /v1/shards
  std::uint64_t newest_checkpoint = 1;

  // Results of measuring links, by the id of the peer; probes of other peers are refused.
  std::map<std::string, api::ProbeReport> ways;
  bool deaf_to_probes = false;
  std::vector<std::string> asked_to_measure;  // in the order of arrival

  std::uint64_t term = 0;     // sent when it joins
  std::string version = "1";  // likewise
  Locality locality{"", "", "", "h"};
  std::vector<GpuLocality> gpus;
  std::string const id;
  std::uint64_t const incarnation;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void release();                                              // lets every held run succeed
  boost::asio::awaitable<bool> until_runs(std::size_t count);  // waits for so many runs; false after five seconds
  boost::asio::awaitable<bool> until_asked_to_measure(std::size_t count);  // waits; false after five seconds
  void hear();                                                             // wakes deaf requests after a change
  boost::asio::awaitable<void> die();                                      // breaks its connections; its port refuses

 private:
  boost::asio::awaitable<http::Response> live(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> look(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> run(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> status(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> commit(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> drop(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> assign(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> measure(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> list_shards(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> show_shard(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> assign_shard(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> assign_shards(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> drop_shard(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> newest(http::Request const& request, http::Body& body);
  boost::asio::awaitable<void> while_set(bool const* deaf);

  [[nodiscard]] std::optional<http::Problem> refusal(api::RunRequest const& order) const;
  [[nodiscard]] bool is_dropped(std::uint64_t number) const;

  http::Condition changed_;
  std::size_t released_ = 0;
  bool dead_ = false;
  http::Router router_;
  http::Server server_;
  std::uint16_t port_ = 0;
};

// Options with short patience, for stories in which workers do not answer.
[[nodiscard]] CoordinatorOptions impatient_options();

// A coordinator with fake workers w0, w1, ... that have not joined yet.
class World {
 public:
  // `journal`: path of the file, "" for none.
  explicit World(std::size_t workers, CoordinatorOptions options = {}, std::string journal = "");

  struct Said {
    unsigned status = 0;
    http::Fields fields;
    boost::json::value json;
    std::string body;
    [[nodiscard]] std::string text(std::string const& pointer) const;  // a string, or any other value as JSON
    [[nodiscard]] std::string code() const { return text("/code"); }
  };
  boost::asio::awaitable<Said> call(http::Method method, std::string path, std::string body = {},
                                    http::Fields fields = {});
  boost::asio::awaitable<Said> get(std::string path) { return call(http::Method::get, std::move(path)); }
  boost::asio::awaitable<Said> put(std::string path, std::string body) {
    return call(http::Method::put, std::move(path), std::move(body));
  }
  boost::asio::awaitable<Said> post(std::string path, std::string body) {
    return call(http::Method::post, std::move(path), std::move(body));
  }
  boost::asio::awaitable<Said> join(std::size_t worker) { return join_as(*workers.at(worker)); }
  boost::asio::awaitable<Said> join_as(FakeWorker& worker);
  // All workers join, and form a group "g" in the order of their ids.
  boost::asio::awaitable<void> stand();
  // Stops the coordinator, and starts another one with the same options and journal.
  boost::asio::awaitable<void> restart();
  boost::asio::awaitable<void> restart_after(std::function<void()> nobody_is_there);
  [[nodiscard]] std::string const& journal() const { return journal_; }
  // GETs `path` until the string at `pointer` is `value`; false after five seconds.
  boost::asio::awaitable<bool> until(std::string path, std::string pointer, std::string value);

  [[nodiscard]] std::uint16_t port() const { return port_; }  // of the coordinator

  // Runs the story to its end, then stops everything. Rethrows the story's exception.
  void tell(boost::asio::awaitable<void> story);

  boost::asio::io_context io{1};
  std::ostringstream log;  // of all its coordinators
  std::vector<std::unique_ptr<FakeWorker>> workers;
  std::unique_ptr<Coordinator> coordinator;

 private:
  boost::asio::awaitable<void> live(boost::asio::awaitable<void> story);
  void begin();

  CoordinatorOptions const options_;
  std::string const journal_;
  Random const random_;
  http::Client client_;
  std::uint16_t port_ = 0;
  std::string url_;
};

}  // namespace chorus::coordinator
