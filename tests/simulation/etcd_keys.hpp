// What a modelled etcd keeps: keys with their versions, and leases. Its members share it; its owner says the time.
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
    std::int64_t lease = 0;  // 0: none
  };
  struct Erase {
    std::string first, end;  // [first, end)
  };
  using Operation = std::variant<Put, Erase>;

  [[nodiscard]] std::int64_t revision() const { return revision_; }
  [[nodiscard]] std::int64_t compacted() const { return compacted_; }
  [[nodiscard]] std::uint64_t bytes() const;

  // Pairs of the keys in [first, end), of `first` alone if `end` is empty, as of a revision that is not compacted; 0:
  // as of now.
  [[nodiscard]] std::vector<Pair> range(std::string const& first, std::string const& end,
                                        std::int64_t revision = 0) const;
  [[nodiscard]] std::optional<Pair> get(std::string const& key) const;

  // Does all operations as one revision if all comparisons hold. The leases exist.
  bool commit(std::vector<Compare> const& compares, std::vector<Operation> const& operations);
  // Forgets what was replaced up to a revision.
  void compact(std::int64_t revision);

  std::int64_t grant(std::chrono::seconds ttl, TimePoint now);
  // The time that the lease has; nothing if it has ended.
  std::optional<std::chrono::seconds> keep_alive(std::int64_t lease, TimePoint now);
  [[nodiscard]] bool has_lease(std::int64_t lease) const { return leases_.contains(lease); }
  // Deletes the keys that hang on it.
  bool revoke(std::int64_t lease);
  // Revokes the leases that have ended.
  void expire(TimePoint now);
  // Gives each lease its full time, as a new leader of etcd does.
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
