// Workers in this process that are members of one group "g"; the test is their coordinator.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "worker/service/testing/live_worker.hpp"

namespace chorus::service::testing {

class LiveGroup {
 public:
  // Workers w0, w1, ... of incarnations 0x10, 0x11, ...; no epoch is assigned. `change` edits their options; `gpus`
  // returns the GPUs of each rank.
  explicit LiveGroup(std::size_t ranks, std::function<void(WorkerOptions&)> const& change = {},
                     std::function<devices::FoundGpus(std::size_t rank)> const& gpus = {});

  LiveWorker& at(std::size_t rank) { return *workers_.at(rank); }
  [[nodiscard]] std::size_t ranks() const { return workers_.size(); }

  // PUT /v1/groups/g at all members, or at one; `change` edits the message to each rank.
  using Change = std::function<void(api::GroupAssignment&)>;
  void assign(std::uint32_t epoch, Change const& change = {});
  Answer assign(std::size_t rank, std::uint32_t epoch, Change const& change = {});

  // A valid request for a run over tensor "x" of 1000 f32 at version 1, ring, sum.
  [[nodiscard]] api::RunRequest request(std::size_t rank, std::uint64_t run) const;
  Answer launch(std::size_t rank, api::RunRequest const& request);
  Answer commit(std::size_t rank, std::uint64_t run);
  Answer abort(std::size_t rank, std::uint64_t run);
  // Launches request() at all ranks concurrently; `change` edits every request.
  std::vector<Answer> run(std::uint64_t run, std::function<void(api::RunRequest&)> const& change = {});

  // Puts a tensor `name` of `count` f32 on every rank: all elements are rank + 1.
  void put_everywhere(std::string const& name, std::size_t count = 1000);
  // The sum of the tensors of put_everywhere().
  [[nodiscard]] std::vector<float> sum(std::size_t count = 1000) const;

  // POST /v1/groups/g/{op} at all ranks concurrently.
  std::vector<Answer> call(std::string const& op, std::string const& body);
  std::vector<Answer> call(std::string const& op, std::function<std::string(std::size_t rank)> const& body);
  std::vector<Answer> all_reduce(std::string const& body) { return call("all_reduce", body); }

 private:
  std::vector<std::unique_ptr<LiveWorker>> workers_;
};

// Calls action(0) ... action(count - 1), each in a thread of its own, and returns their answers.
std::vector<Answer> at_once(std::size_t count, std::function<Answer(std::size_t)> const& action);

}  // namespace chorus::service::testing
