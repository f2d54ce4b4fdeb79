#include "server/coordinator/parameters/checkpoint_alignment.hpp"

#include <algorithm>
#include <iterator>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds alignment_patience{30};  // longer than shards are held plus the time of their copies
constexpr std::size_t most_shards_at_once = 256;        // held at the same time

std::size_t owners_of(api::Parameter const& parameter) {
  return static_cast<std::size_t>(std::ranges::count(parameter.endpoints, "owner", &api::ParameterEndpoint::role));
}

}  // namespace

struct CheckpointAlignment::Asked {
  explicit Asked(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::map<Key, Place> places;
  std::size_t pending = 0;
  std::optional<Problem> problem;
  http::Condition changed;

  void add(api::CheckpointPlaces const& said) {
    for (auto const& item : said.items) {
      auto& place = places[{item.parameter, item.shard}];
      for (auto const& client : item.clients) place[client.name] = {client.incarnation, client.next_sequence};
    }
  }
};

CheckpointAlignment::CheckpointAlignment(asio::any_io_executor executor, WorkerClient& workers)
    : executor_(executor), workers_(workers), tasks_(executor) {}

asio::awaitable<void> CheckpointAlignment::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<http::Checked<std::vector<std::string>>> CheckpointAlignment::align(
    std::string checkpoint, std::uint64_t number, std::vector<api::Parameter> parameters) {
  std::vector<std::string> unaligned;
  std::vector<api::Parameter> some;
  std::size_t shards = 0;
  std::erase_if(parameters, [](auto const& parameter) { return owners_of(parameter) < 2; });
  for (auto next = parameters.begin(); next != parameters.end();) {
    shards += owners_of(*next);
    some.push_back(std::move(*next++));
    if (next != parameters.end() && shards + owners_of(*next) <= most_shards_at_once) continue;
    auto problem = co_await align_some(checkpoint, number, std::move(some), &unaligned);
    if (problem) co_return std::move(*problem);
    some.clear();
    shards = 0;
  }
  co_return unaligned;
}

asio::awaitable<std::optional<Problem>> CheckpointAlignment::align_some(std::string checkpoint, std::uint64_t number,
                                                                        std::vector<api::Parameter> parameters,
                                                                        std::vector<std::string>* unaligned) {
  Owners owners;
  for (auto const& parameter : parameters)
    for (auto const& endpoint : parameter.endpoints) {
      if (endpoint.role != "owner") continue;
      auto& owner = owners[endpoint.worker];
      owner.url = endpoint.url;
      owner.shards.number = number;
      owner.shards.timeout_ms = hold_ms;
      owner.shards.items.push_back({parameter.name, endpoint.shard, {}});
    }
  auto const held = co_await ask_all(Step::hold, checkpoint, owners);
  // A worker of an earlier release does not support this.
  if (held->problem && held->problem->code == ProblemCode::not_found) {
    for (auto const& parameter : parameters) unaligned->push_back(parameter.name);
    co_return std::nullopt;
  }
  if (held->problem) co_return held->problem;
  std::map<std::string, Place, std::less<>> farthest;
  for (auto const& [key, place] : held->places)
    for (auto const& [client, progress] : place)
      if (auto& best = farthest[key.first][client]; best < progress) best = progress;
  for (auto& [worker, owner] : owners)
    for (auto& item : owner.shards.items) {
      auto place = farthest[item.parameter];
      auto const& here = held->places[{item.parameter, item.shard}];
      for (auto const& [client, progress] : abandoned_[item.parameter]) {
        auto const wanted = place.find(client);
        if (wanted == place.end() || wanted->second != progress) continue;
        if (auto const present = here.find(client); present != here.end())
          wanted->second = present->second;
        else
          place.erase(wanted);
      }
      for (auto const& [client, progress] : place) item.clients.push_back({client, progress.first, progress.second});
    }
  auto const kept = co_await ask_all(Step::keep, std::move(checkpoint), std::move(owners));
  if (kept->problem) co_return kept->problem;
  for (auto const& parameter : parameters) abandoned_.erase(parameter.name);
  for (auto const& [key, place] : kept->places) {
    auto const& wanted = farthest[key.first];
    if (place == wanted) continue;
    for (auto const& [client, progress] : wanted)
      if (auto const there = place.find(client); there == place.end() || there->second < progress)
        abandoned_[key.first][client] = progress;
    if (unaligned->empty() || unaligned->back() != key.first) unaligned->push_back(key.first);
  }
  co_return std::nullopt;
}

asio::awaitable<std::shared_ptr<CheckpointAlignment::Asked>> CheckpointAlignment::ask_all(Step step,
                                                                                          std::string checkpoint,
                                                                                          Owners owners) {
  auto const asked = std::make_shared<Asked>(executor_);
  asked->pending = owners.size();
  for (auto const& [worker, owner] : owners)
    tasks_.spawn("checkpoint of " + worker, ask(asked, step, checkpoint, worker, owner));
  while (asked->pending > 0) co_await asked->changed.wait_until(http::TimePoint::max());
  co_return asked;
}

asio::awaitable<void> CheckpointAlignment::ask(std::shared_ptr<Asked> asked, Step step, std::string checkpoint,
                                               std::string worker, Owner owner) {
  auto const deadline = Clock::now() + alignment_patience;
  auto said = WorkerClient::Said<api::CheckpointPlaces>(http::Checked<api::CheckpointPlaces>(Problem()));
  if (step == Step::hold)
    said = co_await workers_.hold_shards(owner.url, std::move(checkpoint), std::move(owner.shards), deadline);
  else
    said = co_await workers_.take_images(owner.url, std::move(checkpoint), std::move(owner.shards), deadline);
  if (said.has_error()) {
    asked->problem = Problem(ProblemCode::worker_unreachable, "worker '" + worker + "': " + said.error().detail);
  } else if (said.value().has_error()) {
    asked->problem = said.value().error();
    asked->problem->detail = "worker '" + worker + "': " + asked->problem->detail;
  } else {
    asked->add(said.value().value());
  }
  --asked->pending;
  asked->changed.notify_all();
}

}  // namespace chorus::coordinator
