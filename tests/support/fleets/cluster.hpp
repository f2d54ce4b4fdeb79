// A coordinator and workers as real processes on loopback, and HTTP calls to them.
//
// The client is cpp-httplib, which is independent of the code under test.
#pragma once

#include <httplib.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/held_port.hpp"
#include "tests/support/process.hpp"

namespace chorus::testing {

struct Answer {
  int status = 0;
  std::string body;
  httplib::Headers headers;
  [[nodiscard]] boost::json::value json() const { return boost::json::parse(body); }
  [[nodiscard]] std::string code() const;  // the problem's code, or ""
  [[nodiscard]] std::string header(std::string const& name) const;
};

// One service process and its URL.
class Service {
 public:
  Service(std::string id, std::vector<std::string> arguments);  // waits for "listening on"
  Service(std::string id, Process started);                     // waits for "listening on"

  Answer get(std::string const& path) const;
  Answer put(std::string const& path, std::string const& json) const;
  Answer post(std::string const& path, std::string const& json, httplib::Headers headers = {}) const;
  Answer erase(std::string const& path) const;

  Answer put_tensor(std::string const& name, std::string const& dtype, std::string const& shape,
                    std::string bytes) const;
  template <class T>
  Answer put_tensor(std::string const& name, std::string const& dtype, std::vector<T> const& values) const {
    return put_tensor(name, dtype, std::to_string(values.size()),
                      std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)));
  }
  template <class T>
  std::vector<T> get_tensor(std::string const& name) const {
    auto const answer = get("/v1/tensors/" + name);
    std::vector<T> values(answer.body.size() / sizeof(T));
    std::copy_n(answer.body.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
    return values;
  }
  std::uint64_t tensor_version(std::string const& name) const;  // 0 if it does not exist
  // True if /readyz answers 200. False also if the service has ended or does not answer.
  [[nodiscard]] bool is_ready() const;
  // Sum of the series that begin with this text; -1 if there is none.
  double metric(std::string const& name_and_labels) const;

  Process process;
  std::string const id;
  std::string const url;
  [[nodiscard]] std::uint16_t port() const;

 private:
  std::unique_ptr<httplib::Client> client() const;
};

class Cluster {
 public:
  // localities[i] is the locality of worker "w<i>". Returns when all workers are ready.
  explicit Cluster(std::size_t workers, std::vector<std::string> localities = {},
                   std::vector<std::string> coordinator_flags = {});

  Service& worker(std::size_t i) { return *workers_.at(i); }
  [[nodiscard]] std::size_t size() const { return workers_.size(); }
  Service& add_worker(std::string const& id, std::string const& locality, std::vector<std::string> const& flags = {},
                      std::string const& program = "chorus-worker");
  void kill_worker(std::size_t i);  // SIGKILL, reaped

  // PUT /v1/groups/{name} with these workers, or all; fails the test unless it succeeds. Returns worker ids in rank
  // order.
  std::vector<std::string> make_group(std::string const& name, std::vector<std::string> ids = {});
  // Returns the worker with this rank in the group.
  Service& at_rank(std::string const& group, std::uint32_t rank);

  // POST /v1/collectives?wait=30s; returns the collective from the answer.
  boost::json::value run(boost::json::object request);

  HeldPort const coordinator_port;  // kept for the next coordinator
  Service coordinator;

 private:
  std::vector<std::unique_ptr<Service>> workers_;
};

}  // namespace chorus::testing
