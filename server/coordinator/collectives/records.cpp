#include "server/coordinator/collectives/records.hpp"

#include <charconv>

#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

// Run numbers must fit into numbers of JSON (2^53), and a restarted coordinator must not repeat those of its previous
// process.
std::uint64_t first_run(std::uint64_t random) { return ((random & 0xfffff) << 32) + 1; }

// A store that was restored from an old copy does not know the runs since then. Workers do, and would take a new run
// under such a number for a repetition. So each process begins above the kept number, but at a place that the others
// are unlikely to have drawn.
std::uint64_t next_run(std::uint64_t last, std::uint64_t random) {
  constexpr auto most = std::uint64_t{1} << 52;
  return last < most ? last + 1 + ((random & 0xffff) << 20) : first_run(random);
}

bool same_body(api::CollectiveRequest const& a, api::CollectiveRequest const& b) {
  return http::encode(a) == http::encode(b);
}

}  // namespace

Records::Records(Random random, RecordLimits limits)
    : random_(std::move(random)), limits_(limits), next_run_(first_run(random_())) {}

void Records::restore(std::vector<JournalCollective> const& kept, std::uint64_t last_run, std::uint64_t last_sequence) {
  if (last_run != 0) next_run_ = next_run(last_run, random_());
  next_sequence_ = last_sequence + 1;
  for (auto const& one : kept) {
    auto const& id = one.record.id;
    auto& entry = by_id_[id];
    entry.record = std::make_shared<Record>(one.record, one.refused);
    entry.sequence = one.sequence;
    entry.key = one.key;
    id_by_sequence_.emplace(one.sequence, id);
    if (one.key && !entry.record->may_be_repeated()) id_by_key_.emplace(*one.key, id);
    if (entry.record->ended()) ended_.push_back(id);
  }
}

JournalCollective Records::kept(Record const& record) const {
  auto const& entry = by_id_.find(record.view().id)->second;
  return {entry.sequence, entry.key, "", record.refused(), std::nullopt, record.view()};
}

http::Checked<Records::Begun> Records::begin(Name const& name, api::CollectiveRequest const& request,
                                             std::string created_at) {
  if (known(name) != nullptr && may_be_repeated(name)) forget_name(name);
  if (auto const* id = known(name)) {
    auto const& record = by_id_.find(*id)->second.record;
    if (same_body(record->view().request, request)) return Begun{record, false};
    if (name.id)
      return http::Problem(http::ProblemCode::already_exists, "collective '" + *id + "' exists with another body");
    return http::idempotency_reused("collective '" + *id + "'");
  }
  if (running() >= limits_.running) {
    http::Problem full(http::ProblemCode::unavailable, std::to_string(running()) + " collectives are under way");
    full.retry_after_s = 1;
    return full;
  }
  return Begun{add(name, request, std::move(created_at)).record, true};
}

std::string const* Records::known(Name const& name) const {
  if (name.id) {
    auto const found = by_id_.find(*name.id);
    return found == by_id_.end() ? nullptr : &found->first;
  }
  auto const found = name.key ? id_by_key_.find(*name.key) : id_by_key_.end();
  return found == id_by_key_.end() ? nullptr : &found->second;
}

Records::Entry& Records::add(Name const& name, api::CollectiveRequest const& request, std::string created_at) {
  auto const id = name.id.value_or("c-" + api::to_hex(random_()));
  auto& entry = by_id_[id];
  entry.record = std::make_shared<Record>(id, next_run_++, request, std::move(created_at));
  entry.sequence = next_sequence_++;
  id_by_sequence_.emplace(entry.sequence, id);
  if (!name.id && name.key) {
    entry.key = name.key;
    id_by_key_.emplace(*name.key, id);
  }
  return entry;
}

bool Records::may_be_repeated(Name const& name) const {
  return by_id_.find(*known(name))->second.record->may_be_repeated();
}

// A key is free again, and its record stays in the list. A record with an id in its request is removed, because the id
// names the record itself.
void Records::forget_name(Name const& name) {
  if (!name.id) {
    id_by_key_.erase(*name.key);
    return;
  }
  std::erase(ended_, *name.id);
  forget(*name.id);
}

void Records::forget(std::string const& id) {
  auto const entry = by_id_.find(id);
  id_by_sequence_.erase(entry->second.sequence);
  if (auto const& key = entry->second.key)
    if (auto const named = id_by_key_.find(*key); named != id_by_key_.end() && named->second == id)
      id_by_key_.erase(named);
  by_id_.erase(entry);
}

std::optional<std::string> Records::keep_for_a_while(Record const& record) {
  ended_.push_back(record.view().id);
  if (ended_.size() <= limits_.ended) return std::nullopt;
  auto oldest = std::move(ended_.front());
  ended_.pop_front();
  forget(oldest);
  return oldest;
}

http::Checked<std::shared_ptr<Record>> Records::find(std::string_view id) const {
  if (auto const found = by_id_.find(id); found != by_id_.end()) return found->second.record;
  auto const shown = is_identifier(id) ? " '" + std::string(id) + "'" : std::string();
  return http::Problem(
      http::ProblemCode::unknown_collective,
      "no collective" + shown + "; the last " + std::to_string(limits_.ended) + " that ended are kept");
}

http::Checked<api::CollectiveList> Records::list(std::size_t limit, std::string_view cursor) const {
  auto before = next_sequence_;
  if (!cursor.empty()) {
    auto const [rest, error] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), before);
    if (error != std::errc() || rest != cursor.data() + cursor.size())
      return http::Problem(http::ProblemCode::bad_request, "query parameter cursor is not one that a list has given");
  }
  api::CollectiveList list;
  auto next = std::make_reverse_iterator(id_by_sequence_.lower_bound(before));
  for (; next != id_by_sequence_.rend() && list.items.size() < limit; ++next) {
    list.items.push_back(by_id_.find(next->second)->second.record->view());
    list.next_cursor = std::to_string(next->first);
  }
  if (next == id_by_sequence_.rend()) list.next_cursor.reset();
  return list;
}

}  // namespace chorus::coordinator
