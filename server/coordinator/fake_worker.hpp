// A worker as the coordinator sees one, without data plane: it answers what the test tells it to. And a world of them
// around a coordinator, all on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/api/groups.hpp"
#include "http/api/parameters.hpp"
#include "http/api/probes.hpp"
#include "http/api/runs.hpp"
#include "http/condition.hpp"
#include "http/server.hpp"
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

  // How runs go. Held ones wait for release() or for their DELETE.
  bool hold_runs = false;
  std::optional<http::Problem> fail_runs;
  std::optional<http::Problem> refuse_commits;
  bool repeats_commits = false;  // gives the version again; otherwise a second commit is unknown
  std::string digest = "00000000000000dd";
  double seconds = 0.001;                            // that its part of a run took
  std::map<std::string, std::uint32_t> epochs_seen;  // by group: assignments up to this are fenced
  bool deaf_to_heads = false;                        // takes the requests, and never answers
  bool deaf_to_runs = false;
  std::vector<std::uint32_t> waits_for;  // what held runs report at their deadline

  std::vector<api::RunRequest> runs;     // as they came
  std::vector<api::RunRequest> refused;  // of them those whose tensor was not at the version that they named
  std::size_t looks = 0;                 // times that it was asked for a tensor
  std::vector<std::uint64_t> committed, dropped;
  std::vector<api::GroupAssignment> assignments;
  std::size_t probes = 0;

  // Shards of parameters, by parameter and number, as they were assigned last; backups are complete at once.
  std::map<std::pair<std::string, std::uint32_t>, api::ShardAssignment> shards;
  bool deaf_to_shards = false;
  bool has_lost_shards = false;               // owns none that it is told to
  bool has_no_gpu = false;                    // for shards that want one
  bool takes_one_at_a_time = false;           // as workers of earlier releases
  std::vector<std::size_t> orders_at_a_time;  // of each POST /v1/shards

  // What it measures of the way to others, by their ids; probes of anybody else are refused.
  std::map<std::string, api::ProbeReport> ways;
  bool deaf_to_probes = false;
  std::vector<std::string> asked_to_measure;  // as they came

  Locality locality{"", "", "", "h"};
  std::vector<GpuLocality> gpus;
  std::string const id;
  std::uint64_t const incarnation;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void release();                                              // lets every held run succeed
  boost::asio::awaitable<bool> until_runs(std::size_t count);  // that many have come; false after five seconds
  boost::asio::awaitable<bool> until_asked_to_measure(std::size_t count);  // likewise
  void hear();                                                             // after a change of what it is deaf to
  boost::asio::awaitable<void> die();                                      // connections break, the port refuses

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

// A coordinator's, for stories in which workers do not answer.
[[nodiscard]] CoordinatorOptions impatient_options();

// A coordinator with fake workers w0, w1, ... that have not joined yet.
class World {
 public:
  // `journal`: its file, "" for none.
  explicit World(std::size_t workers, CoordinatorOptions options = {}, std::string journal = "");

  struct Said {
    unsigned status = 0;
    http::Fields fields;
    boost::json::value json;
    std::string body;
    [[nodiscard]] std::string text(std::string const& pointer) const;  // of a string, or of any other value as JSON
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
  // All workers join, and become a group "g" in the order of their ids.
  boost::asio::awaitable<void> stand();
  // Stops the coordinator, and starts another one with the same options and journal.
  boost::asio::awaitable<void> restart();
  boost::asio::awaitable<void> restart_after(std::function<void()> nobody_is_there);
  [[nodiscard]] std::string const& journal() const { return journal_; }
  // GETs `path` until the string at `pointer` is `value`; false after five seconds.
  boost::asio::awaitable<bool> until(std::string path, std::string pointer, std::string value);

  [[nodiscard]] std::uint16_t port() const { return port_; }  // the coordinator's

  // Runs the story to its end, then stops everything. Rethrows what the story threw.
  void tell(boost::asio::awaitable<void> story);

  boost::asio::io_context io{1};
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
