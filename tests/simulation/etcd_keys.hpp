// The state of a modelled etcd: keys with their versions, and leases. The members share it, and the caller gives the
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace chorus::simulation {

class EtcdKeys {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Pair {
    std::string key, value;
    std::int64_t create_revision = 0, mod_revision = 0, version = 0, lease = 0;
  };
  // Equality of a key's create_revision or mod_revision; 0: the key does not exist.
  struct Compare {
    std::string key;
    std::optional<std::int64_t> create_revision, mod_revision;
  };
  struct Put {
    std::string key, value;
    std::int64_t lease = 0;  // 0: no lease
  };
  struct Erase {
    std::string first, end;  // [first, end)
  };
  using Operation = std::variant<Put, Erase>;

  [[nodiscard]] std::int64_t revision() const { return revision_; }
  [[nodiscard]] std::int64_t compacted() const { return compacted_; }
  [[nodiscard]] std::uint64_t bytes() const;

  // Returns the pairs of the keys in [first, end), or of `first` alone if `end` is empty. `revision`: a revision that
  // is not compacted; 0: the present one.
  [[nodiscard]] std::vector<Pair> range(std::string const& first, std::string const& end,
                                        std::int64_t revision = 0) const;
  [[nodiscard]] std::optional<Pair> get(std::string const& key) const;

  // Does all operations as one revision if all comparisons hold. The leases must exist.
  bool commit(std::vector<Compare> const& compares, std::vector<Operation> const& operations);
  // Drops the versions that were replaced up to this revision.
  void compact(std::int64_t revision);

  std::int64_t grant(std::chrono::seconds ttl, TimePoint now);
  // Returns the remaining time of the lease; nothing if it has ended.
  std::optional<std::chrono::seconds> keep_alive(std::int64_t lease, TimePoint now);
  [[nodiscard]] bool has_lease(std::int64_t lease) const { return leases_.contains(lease); }
  // Deletes the keys that are bound to the lease.
  bool revoke(std::int64_t lease);
  // Revokes the leases that have ended.
  void expire(TimePoint now);
  // Gives each lease its full time, as a newly elected leader of etcd does.
  void extend_leases(TimePoint now);

 private:
  struct Version {
    std::int64_t revision = 0;
    std::optional<Pair> pair;  // empty: deleted
  };
  struct Lease {
    std::chrono::seconds ttl{0};
    TimePoint ends;
  };

  void put(Put const& put, std::int64_t revision);
  void erase(std::string const& first, std::string const& end, std::int64_t revision);

  std::int64_t revision_ = 1, compacted_ = 0, last_lease_ = 7000;
  std::map<std::string, std::vector<Version>> keys_;
  std::map<std::int64_t, Lease> leases_;
};

}  // namespace chorus::simulation
