// Workers in this process, and a coordinator that does what the test says.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "worker/api/worker.hpp"

namespace chorus::embedded::testing {

class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();
  FakeCoordinator(FakeCoordinator const&) = delete;
  FakeCoordinator& operator=(FakeCoordinator const&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // From now on every renewal of a lease is answered as to a process whose name was taken.
  void fence_all();

  // PUT /v1/groups/{name} at these workers, in rank order, once they have joined; `change` edits what they are told.
  using Change = std::function<void(chorus::api::Group&)>;
  void assign(std::string const& name, std::uint32_t epoch, std::vector<std::string> const& ids,
              Change const& change = {});

 private:
  struct Joined {
    std::string incarnation, url;
  };
  [[nodiscard]] Joined wait_for(std::string const& id);
  [[nodiscard]] bool has_joined(std::string const& id);
  // PUT and DELETE of a group, as workers ask for: of ids that have all joined, in their order.
  void make(httplib::Request const& request, httplib::Response& response);
  void remove(std::string const& name);
  void tell(chorus::api::Group const& group, std::vector<chorus::api::Member> const& members);

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Joined> joined_;
  std::map<std::string, chorus::api::Group> groups_;
  std::uint32_t last_epoch_ = 1000;  // of those that workers have asked for
  int renewal_status_ = 200;
};

enum class Memory : bool { shared, own };

class EmbeddedGroup {
 public:
  // Workers w0, w1, ... of group "g" at epoch 1.
  explicit EmbeddedGroup(std::size_t ranks, Memory memory = Memory::shared);

  [[nodiscard]] std::size_t ranks() const { return workers.size(); }
  [[nodiscard]] std::vector<std::string> ids() const;
  [[nodiscard]] JoinedGroup join(std::size_t rank);

  // What every rank does, each in a thread of its own; throws what one of them threw. Checks are made afterwards.
  void everywhere(std::function<void(JoinedGroup&, std::size_t rank)> const& action);

  FakeCoordinator coordinator;
  std::vector<Worker> workers;
};

[[nodiscard]] WorkerOptions test_options(std::string id, std::string coordinator, Memory memory = Memory::shared);
[[nodiscard]] std::chrono::steady_clock::time_point soon();

}  // namespace chorus::embedded::testing
