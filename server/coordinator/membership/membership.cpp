#include "server/coordinator/membership/membership.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "http/client/client.hpp"
#include "server/coordinator/membership/gpu_reports.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::size_t most_workers = 65536;
constexpr std::size_t fenced_remembered = 16;  // incarnations per id
constexpr std::chrono::minutes takeovers_within{1};
constexpr std::size_t takeovers_max = 64;
constexpr auto forget_after = std::chrono::minutes(10);
// Promise assumed for a worker if its journal does not have one.
constexpr auto unknown_promise = std::chrono::seconds(60);

http::Problem fenced_problem(std::string_view id, std::uint64_t theirs, std::uint64_t present) {
  return {http::ProblemCode::epoch_fenced, "incarnation " + api::to_hex(theirs) + " of worker '" + std::string(id) +
                                               "' is fenced: the name belongs to incarnation " + api::to_hex(present)};
}

http::Problem unknown_worker(std::string_view id) {
  auto const shown = is_identifier(id) ? " '" + std::string(id) + "'" : std::string();
  return {http::ProblemCode::unknown_worker,
          "no worker" + shown + " has joined, or its lease has passed; join with POST /v1/workers"};
}

void check_url(api::JoinRequest const& request, Newcomer& newcomer, std::vector<http::FieldError>& errors) {
  auto const url = http::parse_url(request.url);
  if (!is_showable(request.url, 256) || url.has_error() || url.value().host.empty() || url.value().port == 0 ||
      (!url.value().path.empty() && url.value().path != "/")) {
    errors.push_back({"/url",
                      "expected http://HOST:PORT or https://HOST:PORT where the coordinator and the other workers "
                      "reach this worker"});
    return;
  }
  newcomer.url = request.url;
  if (newcomer.url.back() == '/') newcomer.url.pop_back();
}

void check_locality(api::JoinRequest const& request, Newcomer& newcomer, std::vector<http::FieldError>& errors) {
  std::array<std::pair<char const*, std::string const*>, 4> const parts{{{"region", &request.locality.region},
                                                                         {"zone", &request.locality.zone},
                                                                         {"rack", &request.locality.rack},
                                                                         {"host", &request.locality.host}}};
  for (auto const& [name, value] : parts)
    if (!is_showable(*value, 128))
      errors.push_back({std::string("/locality/") + name, "expected at most 128 bytes without control characters"});
  newcomer.locality = request.locality;
}

}  // namespace

http::Checked<Newcomer> check_join(api::JoinRequest const& request) {
  Newcomer newcomer;
  std::vector<http::FieldError> errors;
  if (!is_identifier(request.id)) errors.push_back(not_an_identifier("worker id", request.id, "/id").errors.front());
  newcomer.id = request.id;
  if (auto const incarnation = api::from_hex(request.incarnation))
    newcomer.incarnation = *incarnation;
  else
    errors.push_back({"/incarnation", "expected 16 hexadecimal digits, drawn when the process starts"});
  check_url(request, newcomer, errors);
  check_locality(request, newcomer, errors);
  if (!is_showable(request.version, 64))
    errors.push_back({"/version", "expected at most 64 bytes without control characters"});
  newcomer.version = request.version;
  check_gpus(request.gpus, errors);
  newcomer.gpus = request.gpus;
  newcomer.term = request.term;
  if (errors.empty()) return newcomer;
  auto problem = invalid_field(errors.front().pointer, errors.front().detail);
  problem.errors = std::move(errors);
  return problem;
}

std::optional<http::Problem> Membership::refuse(Newcomer const& newcomer) const {
  auto const present = workers_.find(newcomer.id);
  if (present == workers_.end() && workers_.size() >= most_workers)
    return http::Problem(http::ProblemCode::unavailable, "there are 65536 workers already");
  auto const fenced = fenced_.find(newcomer.id);
  if (present != workers_.end() && fenced != fenced_.end() &&
      std::ranges::find(fenced->second, newcomer.incarnation) != fenced->second.end())
    return fenced_problem(newcomer.id, newcomer.incarnation, present->second.incarnation);
  return std::nullopt;
}

http::Checked<Membership::Joined> Membership::join(Newcomer const& newcomer, TimePoint now) {
  if (auto problem = refuse(newcomer)) return std::move(*problem);
  Joined joined;
  auto const [place, created] = workers_.try_emplace(newcomer.id);
  auto& worker = place->second;
  joined.created = created;
  if (!created && worker.incarnation != newcomer.incarnation) {
    joined.fenced = worker.incarnation;
    auto& fenced = fenced_[newcomer.id];
    fenced.push_back(worker.incarnation);
    if (fenced.size() > fenced_remembered) fenced.pop_front();
    joined.taken_over = worker.ready && now - worker.heard <= worker.lease;
    auto& takeovers = takeovers_[newcomer.id];
    if (joined.taken_over) takeovers.push_back({now, worker.url});
    while (!takeovers.empty() && (now - takeovers.front().at > takeovers_within || takeovers.size() > takeovers_max))
      takeovers.pop_front();
  }
  // A worker that any coordinator told that its lease is over counts as revived.
  joined.revived = !created && (!worker.ready || newcomer.term > worker.term);
  joined.moved = !created && (worker.url != newcomer.url || worker.locality != newcomer.locality ||
                              worker.version != newcomer.version || worker.gpus != newcomer.gpus);
  auto const joined_at = created || joined.fenced ? arrivals_++ : worker.joined;
  // A delayed join belongs to an earlier term.
  auto const same = !created && !joined.fenced;
  auto const term = same ? std::max(worker.term, newcomer.term) : newcomer.term;
  worker = {newcomer.id, newcomer.incarnation, newcomer.url, newcomer.locality, newcomer.version, true, joined_at,
            now,         newcomer.gpus,        lease_};
  worker.term = term;
  return joined;
}

http::Checked<Membership::Renewed> Membership::renew(std::string_view id, std::string_view incarnation,
                                                     std::optional<std::uint32_t> lives_by_ms, TimePoint now) {
  auto const place = workers_.find(id);
  if (place == workers_.end()) return unknown_worker(id);
  auto& worker = place->second;
  auto const theirs = api::from_hex(incarnation);
  if (!theirs) return invalid_field("/incarnation", "expected 16 hexadecimal digits");
  if (*theirs != worker.incarnation) return fenced_problem(id, *theirs, worker.incarnation);
  if (!worker.ready) return unknown_worker(id);
  worker.heard = now;
  // No worker gets a longer lease than promised, whatever a renewal claims.
  auto const lives_by = lives_by_ms ? std::chrono::milliseconds(*lives_by_ms) : lease_;
  auto const promise = std::max(lease_, std::min(worker.lease, lives_by));
  auto const changed = std::exchange(worker.lease, promise) != promise;
  return Renewed{lease_, changed};
}

http::Checked<Worker> Membership::leave(std::string_view id, std::optional<std::string_view> incarnation) {
  auto const place = workers_.find(id);
  if (place == workers_.end()) return unknown_worker(id);
  if (incarnation) {
    auto const theirs = api::from_hex(*incarnation);
    if (!theirs)
      return http::Problem(http::ProblemCode::bad_request,
                           "query parameter incarnation: expected 16 hexadecimal digits");
    if (*theirs != place->second.incarnation) return fenced_problem(id, *theirs, place->second.incarnation);
  }
  auto left = std::move(place->second);
  workers_.erase(place);
  fenced_.erase(left.id);
  takeovers_.erase(left.id);
  return left;
}

std::optional<JournalWorker> Membership::kept(std::string_view id) const {
  auto const* worker = find(id);
  if (worker == nullptr) return std::nullopt;
  JournalWorker kept{
      {worker->id, api::to_hex(worker->incarnation), worker->url, worker->locality, worker->version, worker->gpus},
      worker->ready,
      worker->joined,
      {},
      static_cast<std::uint32_t>(worker->lease.count())};
  kept.self.term = worker->term;
  if (auto const fenced = fenced_.find(id); fenced != fenced_.end())
    for (auto const incarnation : fenced->second) kept.fenced.push_back(api::to_hex(incarnation));
  return kept;
}

std::vector<std::string> Membership::restore(std::vector<JournalWorker> const& workers, TimePoint now) {
  std::vector<std::string> promised_anew;
  for (auto const& [self, ready, joined, fenced, lease_ms] : workers) {
    auto const promise = std::max(lease_, lease_ms ? std::chrono::milliseconds(*lease_ms) : unknown_promise);
    if (promise.count() != lease_ms) promised_anew.push_back(self.id);
    workers_[self.id] = {self.id,      api::from_hex(self.incarnation).value_or(0),
                         self.url,     self.locality,
                         self.version, ready,
                         joined,       now,
                         self.gpus,    promise};
    workers_[self.id].term = self.term;
    for (auto const& incarnation : fenced) fenced_[self.id].push_back(api::from_hex(incarnation).value_or(0));
    arrivals_ = std::max(arrivals_, joined + 1);
  }
  return promised_anew;
}

std::set<std::string, std::less<>> Membership::silent(TimePoint now) const {
  std::set<std::string, std::less<>> ids;
  for (auto const& [id, worker] : workers_)
    if (worker.ready && now - worker.heard > worker.lease / 2) ids.insert(id);
  return ids;
}

Membership::Expired Membership::expire(TimePoint now, std::set<std::string, std::less<>> const& cut_off) {
  auto const slept = last_expire_ && now - *last_expire_ > lease_ / 2;
  last_expire_ = now;
  // Workers that have fallen silent together are lost together: none of them is to take over from another.
  auto const is_verdict = !slept && std::ranges::any_of(workers_, [now](auto const& entry) {
    return entry.second.ready && now - entry.second.heard > verdict_limit * entry.second.lease;
  });
  auto const limit = is_verdict ? verdict_limit - 1 : verdict_limit;
  Expired expired;
  for (auto next = workers_.begin(); next != workers_.end();) {
    auto& worker = next->second;
    if (slept && worker.ready) worker.heard = now;
    if (cut_off.contains(next->first)) worker.spared_until = now + worker.lease;
    if (worker.ready && now < worker.spared_until && now - worker.heard <= limit * worker.lease) {
      ++next;
      continue;
    }
    if (worker.ready && now - worker.heard > worker.lease) {
      worker.ready = false;
      expired.lost.push_back(worker);
    }
    if (!worker.ready && now - worker.heard > forget_after) {
      fenced_.erase(next->first);
      takeovers_.erase(next->first);
      expired.forgotten.push_back(next->first);
      next = workers_.erase(next);
    } else {
      ++next;
    }
  }
  return expired;
}

bool Membership::mark_lost(std::string_view id, std::uint64_t incarnation) {
  auto const place = workers_.find(id);
  if (place == workers_.end() || place->second.incarnation != incarnation || !place->second.ready) return false;
  place->second.ready = false;
  return true;
}

Worker const* Membership::find(std::string_view id) const {
  auto const place = workers_.find(id);
  return place == workers_.end() ? nullptr : &place->second;
}

std::vector<Worker> Membership::ready_in_order_of_arrival() const {
  std::vector<Worker> ready;
  for (auto const& [id, worker] : workers_)
    if (worker.ready) ready.push_back(worker);
  std::ranges::sort(ready, {}, &Worker::joined);
  return ready;
}

std::size_t Membership::ready_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(workers_, [](auto const& entry) { return entry.second.ready; }));
}

api::Worker Membership::show(Worker const& worker, TimePoint now) const {
  api::Worker shown;
  shown.id = worker.id;
  shown.incarnation = api::to_hex(worker.incarnation);
  shown.url = worker.url;
  shown.locality = worker.locality;
  shown.version = worker.version;
  shown.gpus = worker.gpus;
  shown.state = worker.ready ? "ready" : "lost";
  shown.lease_ms = static_cast<std::uint32_t>(worker.lease.count());
  shown.heard_ms_ago = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(now - worker.heard).count()));
  auto const takeovers = takeovers_.find(worker.id);
  if (takeovers == takeovers_.end()) return shown;
  std::set<std::string> rivals;
  for (auto const& [at, url] : takeovers->second) {
    if (now - at > takeovers_within) continue;
    ++shown.takeovers;
    rivals.insert(url);
  }
  if (shown.takeovers != 0) rivals.insert(worker.url);
  shown.rivals.assign(rivals.begin(), rivals.end());
  return shown;
}

}  // namespace chorus::coordinator
