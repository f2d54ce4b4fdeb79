#include "tests/simulation/etcd_keys.hpp"

#include <algorithm>

namespace chorus::simulation {

std::uint64_t EtcdKeys::bytes() const {
  std::uint64_t bytes = 0;
  for (auto const& [key, versions] : keys_)
    for (auto const& version : versions) bytes += key.size() + (version.pair ? version.pair->value.size() : 0);
  return bytes;
}

std::vector<EtcdKeys::Pair> EtcdKeys::range(std::string const& first, std::string const& end,
                                            std::int64_t revision) const {
  if (revision == 0) revision = revision_;
  std::vector<Pair> pairs;
  for (auto next = keys_.lower_bound(first); next != keys_.end(); ++next) {
    if (end.empty() ? next->first != first : next->first >= end) break;
    auto const& versions = next->second;
    auto const found = std::find_if(versions.rbegin(), versions.rend(),
                                    [revision](Version const& version) { return version.revision <= revision; });
    if (found != versions.rend() && found->pair) pairs.push_back(*found->pair);
  }
  return pairs;
}

std::optional<EtcdKeys::Pair> EtcdKeys::get(std::string const& key) const {
  auto pairs = range(key, "");
  return pairs.empty() ? std::nullopt : std::optional(std::move(pairs.front()));
}

void EtcdKeys::put(Put const& put, std::int64_t revision) {
  auto const before = get(put.key);
  Pair pair{put.key, put.value, revision, revision, 1, put.lease};
  if (before) {
    pair.create_revision = before->create_revision;
    pair.version = before->version + 1;
  }
  keys_[put.key].push_back({revision, std::move(pair)});
}

void EtcdKeys::erase(std::string const& first, std::string const& end, std::int64_t revision) {
  for (auto const& pair : range(first, end)) keys_[pair.key].push_back({revision, std::nullopt});
}

bool EtcdKeys::commit(std::vector<Compare> const& compares, std::vector<Operation> const& operations) {
  for (auto const& compare : compares) {
    auto const found = get(compare.key);
    if (compare.create_revision && (found ? found->create_revision : 0) != *compare.create_revision) return false;
    if (compare.mod_revision && (found ? found->mod_revision : 0) != *compare.mod_revision) return false;
  }
  auto const next = revision_ + 1;
  bool changes = false;
  for (auto const& operation : operations) {
    if (auto const* const put_one = std::get_if<Put>(&operation)) {
      put(*put_one, next);
      changes = true;
    } else {
      auto const& [first, end] = std::get<Erase>(operation);
      if (range(first, end).empty()) continue;
      erase(first, end, next);
      changes = true;
    }
  }
  if (changes) revision_ = next;
  return true;
}

void EtcdKeys::compact(std::int64_t revision) {
  compacted_ = std::max(compacted_, revision);
  for (auto& [key, versions] : keys_) {
    auto const newer = std::ranges::find_if(versions, [&](Version const& one) { return one.revision > compacted_; });
    if (newer != versions.begin()) versions.erase(versions.begin(), newer - (std::prev(newer)->pair ? 1 : 0));
  }
  std::erase_if(keys_, [](auto const& key) { return key.second.empty(); });
}

std::int64_t EtcdKeys::grant(std::chrono::seconds ttl, TimePoint now) {
  leases_[++last_lease_] = {ttl, now + ttl};
  return last_lease_;
}

std::optional<std::chrono::seconds> EtcdKeys::keep_alive(std::int64_t lease, TimePoint now) {
  auto const found = leases_.find(lease);
  if (found == leases_.end() || found->second.ends <= now) return std::nullopt;
  found->second.ends = now + found->second.ttl;
  return found->second.ttl;
}

bool EtcdKeys::revoke(std::int64_t lease) {
  if (leases_.erase(lease) == 0) return false;
  std::vector<std::string> hanging;
  for (auto const& [key, versions] : keys_)
    if (versions.back().pair && versions.back().pair->lease == lease) hanging.push_back(key);
  if (hanging.empty()) return true;
  ++revision_;
  for (auto const& key : hanging) keys_[key].push_back({revision_, std::nullopt});
  return true;
}

void EtcdKeys::expire(TimePoint now) {
  std::vector<std::int64_t> ended;
  for (auto const& [id, lease] : leases_)
    if (lease.ends <= now) ended.push_back(id);
  for (auto const id : ended) revoke(id);
}

void EtcdKeys::extend_leases(TimePoint now) {
  for (auto& [id, lease] : leases_) lease.ends = now + lease.ttl;
}

}  // namespace chorus::simulation
