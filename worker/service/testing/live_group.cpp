#include "worker/service/testing/live_group.hpp"

#include <stdexcept>

#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"

namespace chorus::service::testing {
namespace {

std::uint64_t incarnation_of(std::size_t rank) { return 0x10 + rank; }

}  // namespace

std::vector<Answer> at_once(std::size_t count, std::function<Answer(std::size_t)> const& action) {
  std::vector<Answer> answers(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&, i] { answers[i] = action(i); });
  for (auto& thread : threads) thread.join();
  return answers;
}

LiveGroup::LiveGroup(std::size_t ranks, std::function<void(WorkerOptions&)> const& change,
                     std::function<devices::FoundGpus(std::size_t rank)> const& gpus) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto options = test_options("w" + std::to_string(rank), incarnation_of(rank));
    if (change) change(options);
    auto found = gpus ? gpus(rank) : devices::FoundGpus{{}, "a test has none"};
    workers_.push_back(std::make_unique<LiveWorker>(std::move(options), std::move(found)));
  }
}

void LiveGroup::assign(std::uint32_t epoch, Change const& change) {
  for (std::size_t rank = 0; rank < ranks(); ++rank)
    if (auto const answer = assign(rank, epoch, change); answer.status != 204) throw std::runtime_error(answer.body);
}

Answer LiveGroup::assign(std::size_t rank, std::uint32_t epoch, Change const& change) {
  api::GroupAssignment message;
  message.group.name = "g";
  message.group.epoch = epoch;
  message.group.state = "ready";
  for (std::size_t r = 0; r < ranks(); ++r) {
    api::Member member;
    member.rank = static_cast<std::uint32_t>(r);
    member.worker = workers_[r]->identity().id;
    member.incarnation = api::to_hex(incarnation_of(r));
    member.url = workers_[r]->identity().url;
    message.group.members.push_back(std::move(member));
  }
  api::Selection small{"all_reduce", 1024, "tree", 0, 2, {}, "small"},
      large{"all_reduce", {}, "ring", 0, 2, {}, "large"};
  message.group.selection = {small, large};
  for (auto const& [op, algorithm] : {std::pair{"reduce", "tree"},
                                      {"broadcast", "tree"},
                                      {"all_gather", "ring"},
                                      {"reduce_scatter", "ring"},
                                      {"gather", "binomial"},
                                      {"scatter", "binomial"},
                                      {"all_to_all", "pairwise"},
                                      {"barrier", "dissemination"}})
    message.group.selection.push_back({op, {}, algorithm, 0, 2, {}, "all"});
  message.worker = workers_[rank]->identity().id;
  message.incarnation = api::to_hex(incarnation_of(rank));
  message.token = "00000000000000ff";
  if (change) change(message);
  return workers_[rank]->put("/v1/groups/g", http::encode(message));
}

api::RunRequest LiveGroup::request(std::size_t rank, std::uint64_t run) const {
  api::RunRequest request;
  request.run = run;
  request.group = "g";
  request.epoch = 1;
  request.token = "00000000000000aa";
  request.op = "all_reduce";
  request.algorithm = "ring";
  request.rank = static_cast<std::uint32_t>(rank);
  for (std::size_t r = 0; r < ranks(); ++r)
    request.members.push_back({static_cast<std::uint32_t>(r), workers_[r]->identity().id,
                               api::to_hex(incarnation_of(r)), workers_[r]->identity().url});
  request.tensor = "x";
  request.version = 1;
  request.dtype = "f32";
  request.elements = 1000;
  request.reduce = "sum";
  request.timeout_ms = 20000;
  return request;
}

Answer LiveGroup::launch(std::size_t rank, api::RunRequest const& request) {
  return at(rank).put("/v1/runs/" + std::to_string(request.run), http::encode(request));
}

Answer LiveGroup::commit(std::size_t rank, std::uint64_t run) {
  return at(rank).post("/v1/runs/" + std::to_string(run) + "/commit", "");
}

Answer LiveGroup::abort(std::size_t rank, std::uint64_t run) {
  return at(rank).erase("/v1/runs/" + std::to_string(run));
}

std::vector<Answer> LiveGroup::run(std::uint64_t run, std::function<void(api::RunRequest&)> const& change) {
  return at_once(ranks(), [&](std::size_t rank) {
    auto asked = request(rank, run);
    if (change) change(asked);
    return launch(rank, asked);
  });
}

void LiveGroup::put_everywhere(std::string const& name, std::size_t count) {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    auto const answer = at(rank).put_tensor(name, "f32", std::vector<float>(count, static_cast<float>(rank + 1)));
    if (answer.status / 100 != 2) throw std::runtime_error(answer.body);
  }
}

std::vector<float> LiveGroup::sum(std::size_t count) const {
  auto const sum = ranks() * (ranks() + 1) / 2;  // of 1 to p: always an integer
  return std::vector<float>(count, static_cast<float>(sum));
}

std::vector<Answer> LiveGroup::call(std::string const& op, std::string const& body) {
  return call(op, [&](std::size_t) { return body; });
}

std::vector<Answer> LiveGroup::call(std::string const& op, std::function<std::string(std::size_t)> const& body) {
  return at_once(ranks(), [&](std::size_t rank) { return at(rank).post("/v1/groups/g/" + op, body(rank)); });
}

}  // namespace chorus::service::testing
