#include "server/coordinator/groups/groups.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "collectives/core/nearest_name.hpp"
#include "collectives/topology/orders/order.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

http::Problem pointed(http::ProblemCode code, std::string detail, std::vector<http::FieldError> errors) {
  http::Problem problem(code, std::move(detail));
  problem.errors = std::move(errors);
  return problem;
}

std::optional<http::Problem> wrong_count(std::size_t count, std::string const& pointer) {
  if (count == 0) return invalid_field(pointer, "a group has at least one member");
  if (count > most_members)
    return invalid_field(pointer,
                         std::to_string(count) + " members; a group has at most " + std::to_string(most_members));
  return std::nullopt;
}

http::Checked<std::vector<Worker>> pick_listed(std::vector<std::string> const& ids, bool only_ready,
                                               Membership const& membership) {
  if (auto problem = wrong_count(ids.size(), "/workers")) return std::move(*problem);
  std::vector<Worker> members;
  std::vector<http::FieldError> repeated, unknown, lost;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const pointer = "/workers/" + std::to_string(i);
    if (!is_identifier(ids[i]) || !seen.insert(ids[i]).second) {
      repeated.push_back(is_identifier(ids[i]) ? http::FieldError{pointer, "worker '" + ids[i] + "' is listed twice"}
                                               : not_an_identifier("worker id", ids[i], pointer).errors.front());
    } else if (auto const* worker = membership.find(ids[i]); only_ready && (worker == nullptr || !worker->ready)) {
      continue;
    } else if (worker == nullptr) {
      unknown.push_back({pointer, "no worker '" + ids[i] + "' has joined"});
    } else if (!worker->ready) {
      lost.push_back({pointer, "worker '" + ids[i] + "' is lost"});
    } else {
      members.push_back(*worker);
    }
  }
  for (auto [errors, code] : {std::pair{&repeated, http::ProblemCode::invalid_field},
                              {&unknown, http::ProblemCode::unknown_worker},
                              {&lost, http::ProblemCode::not_enough_workers}})
    if (!errors->empty()) return pointed(code, errors->front().detail, *errors);
  return members;
}

// Returns the first of `size` neighbours whose ring has the least stretch, in one pass over all workers. size >= 1.
std::size_t most_compact(std::span<Locality const> sorted, std::size_t size) {
  auto const hop = [&](std::size_t from, std::size_t to) {
    return static_cast<std::uint64_t>(shared_level(sorted[from], sorted[to]));
  };
  std::uint64_t path = 0;  // the ring without its last hop
  for (std::size_t next = 1; next < size; ++next) path += hop(next - 1, next);
  std::size_t best = 0;
  auto least = path + hop(size - 1, 0);
  for (std::size_t first = 1; first + size <= sorted.size(); ++first) {
    auto const last = first + size - 1;
    path = path + hop(last - 1, last) - hop(first - 1, first);
    if (auto const ring = path + hop(last, first); ring < least) best = first, least = ring;
  }
  return best;
}

// After sorting by locality close workers are neighbours, so the best window of n neighbours is the most compact
// choice. Among equally compact choices, a new group takes the first ids. An existing group prefers the workers that
// came first, so that a newcomer with a smaller id takes no survivor's place.
http::Checked<std::vector<Worker>> pick_closest(std::uint32_t size, bool or_fewer, Membership const& membership,
                                                api::Group const* former) {
  if (auto problem = wrong_count(size, "/size")) return std::move(*problem);
  auto ready = membership.ready_in_order_of_arrival();
  if (or_fewer && size > ready.size()) return ready;
  if (size > ready.size()) {
    auto detail = "a group of " + std::to_string(size) + " was asked for and " + std::to_string(ready.size()) +
                  " workers are ready";
    return pointed(http::ProblemCode::not_enough_workers, detail, {{"/size", detail}});
  }
  if (former == nullptr) std::ranges::sort(ready, {}, &Worker::id);
  std::vector<Locality> localities;
  for (auto const& worker : ready) localities.push_back(worker.locality);
  auto const order = topology::order_by_locality(localities);
  std::vector<Locality> sorted;
  for (auto index : order) sorted.push_back(localities[index]);
  auto const best = most_compact(sorted, size);
  std::vector<Worker> members;
  for (std::size_t i = best; i < best + size; ++i) members.push_back(ready[order[i]]);
  std::ranges::sort(members, {}, &Worker::joined);
  return members;
}

bool is_lost(api::Member const& member, Membership const& membership) {
  auto const* worker = membership.find(member.worker);
  return worker == nullptr || !worker->ready || api::to_hex(worker->incarnation) != member.incarnation;
}

void lose(api::Group& group, std::string const& worker) {
  group.state = "degraded";
  if (std::ranges::find(group.lost, worker) == group.lost.end()) group.lost.push_back(worker);
}

// Returns the group for a change: a copy only if it is in use as a snapshot.
api::Group& for_change(GroupSnapshot& group) {
  if (group.use_count() > 1) group = std::make_shared<api::Group>(*group);
  return *std::const_pointer_cast<api::Group>(group);
}

http::Problem unknown_group(std::string_view name) {
  auto const shown = is_identifier(name) ? " '" + std::string(name) + "'" : std::string();
  return {http::ProblemCode::unknown_group, "no group" + shown + "; make one with PUT /v1/groups/{name}"};
}

double slowest_memory(std::vector<std::vector<GpuLocality>> const& gpus) {
  auto slowest = std::numeric_limits<double>::infinity();
  for (auto const& of_worker : gpus) {
    if (of_worker.empty()) return 0;
    for (auto const& gpu : of_worker) slowest = std::min(slowest, gpu.memory_gbyte_per_s);
  }
  return slowest;
}

}  // namespace

http::Checked<std::vector<Worker>> pick_members(api::GroupRequest const& request, Membership const& membership,
                                                api::Group const* former) {
  if (request.workers.has_value() == request.size.has_value()) {
    std::string const detail = "exactly one of workers and size is expected";
    return pointed(http::ProblemCode::invalid_field, detail, {{"/workers", detail}, {"/size", detail}});
  }
  bool const shrinks = may_shrink(request);
  if (!shrinks && request.on_failure != "fail")
    return invalid_field("/on_failure", unknown_name("on_failure", request.on_failure, {"fail", "shrink"}));
  auto const wanted = request.workers ? request.workers->size() : *request.size;
  if (request.min_ranks == 0 || (request.min_ranks > wanted && wanted != 0))
    return invalid_field("/min_ranks", "is " + std::to_string(request.min_ranks) + "; expected 1 to the " +
                                           std::to_string(wanted) + " that are asked for");
  if (request.order && *request.order != "locality" && !is_measured(request) && !is_listed(request))
    return invalid_field("/order", unknown_name("order", *request.order, {"locality", "measured", "listed"}));
  if (is_listed(request) && !request.workers)
    return invalid_field("/order", "listed ranks are in the order of workers; expected workers instead of size");
  if (is_measured(request) && wanted > most_members_measured)
    return invalid_field("/order", std::to_string(wanted) + " members; at most " +
                                       std::to_string(most_members_measured) +
                                       " are measured, each pair of them; expected locality for more");
  auto members = request.workers ? pick_listed(*request.workers, shrinks, membership)
                                 : pick_closest(*request.size, shrinks, membership, former);
  if (members.has_value() && shrinks && members.value().size() < request.min_ranks) {
    auto detail = std::to_string(members.value().size()) + " of the workers are ready, and min_ranks is " +
                  std::to_string(request.min_ranks);
    return pointed(http::ProblemCode::not_enough_workers, detail, {{"/min_ranks", detail}});
  }
  return members;
}

bool has_members(api::Group const& group, std::vector<Worker> const& workers) {
  if (group.members.size() != workers.size()) return false;
  FormerMembers const members(&group);
  return std::ranges::all_of(workers, [&](Worker const& worker) { return members.find(worker) != nullptr; });
}

std::shared_ptr<GpuWays const> ways_of_gpus(std::vector<Worker> const& members) {
  if (members.size() > topology::max_matrix_workers) return nullptr;
  std::vector<Locality> localities;
  std::vector<std::vector<GpuLocality>> gpus;
  for (auto const& worker : members) {
    localities.push_back(worker.locality);
    gpus.push_back(worker.gpus);
  }
  auto const is_the_only_one = [&](auto const& each) {
    return each.size() == 1 && !each.front().uuid.empty() && each.front().uuid == gpus.front().front().uuid;
  };
  bool const are_one = std::ranges::all_of(gpus, is_the_only_one);
  GpuWays ways{topology::gpu_ways(localities, gpus), slowest_memory(gpus), are_one};
  return ways.pairs.empty() ? nullptr : std::make_shared<GpuWays const>(std::move(ways));
}

api::Group make_group(std::string name, std::uint32_t epoch, api::GroupRequest requested,
                      std::vector<Worker> const& as_listed, RankAssignment const& rank_assignment,
                      api::Group const* former) {
  api::Group group;
  group.requested = std::move(requested);
  group.name = std::move(name);
  group.epoch = epoch;
  group.state = "ready";
  FormerMembers const former_members(former);
  for (std::uint32_t rank = 0; rank < rank_assignment.order.size(); ++rank) {
    auto const& worker = as_listed[rank_assignment.order[rank]];
    group.members.push_back({rank, worker.id, api::to_hex(worker.incarnation), worker.url, worker.locality,
                             rank_assignment.roles[rank], former_members.member_since(worker, epoch)});
  }
  group.order = group.requested.order.value_or("locality");
  if (!rank_assignment.by_position.empty()) group.by_position = rank_assignment.by_position;
  group.stretch = rank_assignment.stretch;
  group.selection = rank_assignment.selection;
  if (std::ranges::none_of(as_listed, is_of_release_0_1)) group.compression = rank_assignment.compression;
  group.segment_bytes = rank_assignment.segment_bytes;
  return group;
}

std::uint32_t Groups::draw_epoch(std::string const& name) {
  if (auto const drawn = drawn_ahead_.extract(name)) return drawn.mapped();
  return epochs_.next(name);
}

bool Groups::draw_ahead(std::string_view name) {
  auto const place = groups_.find(name);
  if (place == groups_.end() || is_left(*place->second)) return false;
  drawn_ahead_[place->first] = epochs_.next(place->first);
  return true;
}

api::Group const& Groups::publish(api::Group group, Membership const& membership, Standing standing) {
  for (auto const& member : group.members)
    if (is_lost(member, membership)) lose(group, member.worker);
  half_changed_.erase(group.name);
  ways_.erase(group.name);
  if (standing.pairs || standing.gpus)
    ways_.emplace(group.name, Ways{std::move(standing.pairs), std::move(standing.gpus)});
  auto& place = groups_[group.name];
  if (place) forget_members(*place);
  place = std::make_shared<api::Group>(std::move(group));
  remember_members(*place);
  return *place;
}

void Groups::remember_members(api::Group const& group) {
  for (auto const& member : group.members) names_by_worker_[member.worker].insert(group.name);
}

void Groups::forget_members(api::Group const& group) {
  for (auto const& member : group.members) {
    auto const names = names_by_worker_.find(member.worker);
    if (names == names_by_worker_.end()) continue;
    names->second.erase(group.name);
    if (names->second.empty()) names_by_worker_.erase(names);
  }
}

Standing Groups::standing(api::Group const& group) const {
  Standing standing;
  for (auto const& member : group.members) standing.localities.push_back(member.locality);
  standing.by_position = group.by_position.value_or(std::vector<std::uint32_t>());
  auto const present = groups_.find(group.name);
  auto const ways = ways_.find(group.name);
  if (present == groups_.end() || present->second->epoch != group.epoch || ways == ways_.end()) return standing;
  standing.pairs = ways->second.pairs;
  standing.gpus = ways->second.gpus;
  return standing;
}

std::optional<JournalGroup> Groups::kept(std::string_view name) const {
  auto const place = groups_.find(name);
  if (place == groups_.end()) return std::nullopt;
  JournalGroup kept{*place->second, std::nullopt, std::nullopt, std::nullopt};
  if (auto const ways = ways_.find(name); ways != ways_.end()) {
    if (ways->second.pairs) kept.pairs = *ways->second.pairs;
    if (ways->second.gpus) kept.gpu_ways = *ways->second.gpus;
  }
  if (auto const half = half_changed_.find(name); half != half_changed_.end()) kept.half_changed = half->second;
  return kept;
}

void Groups::restore(std::vector<JournalGroup> groups, std::map<std::string, JournalEpoch> const& epochs,
                     std::uint32_t floor) {
  epochs_.restore(epochs, floor);
  for (auto& kept : groups) {
    auto const name = kept.group.name;
    if (kept.half_changed) half_changed_[name] = *kept.half_changed;
    if (kept.pairs) ways_[name].pairs = std::make_shared<PairLinks const>(std::move(*kept.pairs));
    if (kept.gpu_ways) ways_[name].gpus = std::make_shared<GpuWays const>(std::move(*kept.gpu_ways));
    remember_members(kept.group);
    groups_.insert_or_assign(name, std::make_shared<api::Group>(std::move(kept.group)));
  }
}

std::optional<std::string> Groups::drawn_in_vain(std::string const& name) {
  return groups_.contains(name) ? std::nullopt : epochs_.retire(name);
}

std::optional<std::string> Groups::change_failed(std::string_view name, std::uint32_t epoch) {
  auto const place = groups_.find(name);
  if (place == groups_.end()) return epochs_.retire(std::string(name));
  for_change(place->second).state = "degraded";
  half_changed_[place->first] = epoch;
  return std::nullopt;
}

std::vector<std::string> Groups::worker_lost(std::string_view id, std::uint64_t incarnation) {
  std::vector<std::string> degraded;
  auto const theirs = api::to_hex(incarnation);
  auto const is_the_one = [&](auto const& member) { return member.worker == id && member.incarnation == theirs; };
  for (auto const& name : names_with(id)) {
    auto& group = groups_.find(name)->second;
    if (std::ranges::none_of(group->members, is_the_one)) continue;
    lose(for_change(group), std::string(id));
    degraded.push_back(name);
  }
  return degraded;
}

http::Checked<GroupSnapshot> Groups::find(std::string_view name) const {
  auto const place = groups_.find(name);
  if (place == groups_.end()) return unknown_group(name);
  return place->second;
}

http::Checked<Groups::Erased> Groups::erase(std::string_view name) {
  auto const place = groups_.find(name);
  if (place == groups_.end()) return unknown_group(name);
  auto group = *place->second;
  groups_.erase(place);
  forget_members(group);
  half_changed_.erase(group.name);
  ways_.erase(group.name);
  auto forgotten = epochs_.retire(group.name);
  return Erased{std::move(group), std::move(forgotten)};
}

std::optional<http::Problem> Groups::unusable(api::Group const& group) const {
  if (group.state == "ready") return std::nullopt;
  http::Problem problem(http::ProblemCode::group_broken, "");
  if (auto const change = half_changed_.find(group.name); change != half_changed_.end())
    problem.detail = "the change of group '" + group.name + "' to epoch " + std::to_string(change->second) +
                     " reached only some members";
  else
    problem.detail = "group '" + group.name + "' has lost a member in epoch " + std::to_string(group.epoch);
  for (auto const& member : group.members)
    if (std::ranges::find(group.lost, member.worker) != group.lost.end()) {
      problem.ranks.push_back(member.rank);
      problem.detail += "; rank " + std::to_string(member.rank) + " ('" + member.worker + "') is lost";
    }
  problem.detail += "; PUT /v1/groups/" + group.name + " makes a new epoch";
  return problem;
}

std::vector<std::string> Groups::names_with(std::string_view worker) const {
  auto const names = names_by_worker_.find(worker);
  if (names == names_by_worker_.end()) return {};
  return {names->second.begin(), names->second.end()};
}

}  // namespace chorus::coordinator
