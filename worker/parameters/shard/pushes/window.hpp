// The deduplication window of a shard: a push that is sent again is applied once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace chorus::parameters {

// The sender of a push. A higher incarnation of a name is a client that has started again: it begins at sequence 0, and
// pushes of its older incarnations are refused. 0 if the client gives no incarnation.
struct Client {
  std::string name;
  std::uint64_t incarnation = 0;
  friend bool operator==(Client const&, Client const&) = default;
};

// A client's sequence numbers begin at 0 and grow by one. Pushes are applied in this order, so one number per client is
// enough. A value.
class Window {
 public:
  enum class Place {
    next,    // all pushes before it were applied
    seen,    // it was applied
    ahead,   // a push before it is missing
    fenced,  // from an older incarnation
  };
  [[nodiscard]] Place place(Client const& client, std::uint64_t sequence) const;
  // Records that the client's next push was applied.
  void advance(Client const& client);

  [[nodiscard]] std::uint64_t next_sequence(Client const& client) const;
  [[nodiscard]] bool knows(std::string_view name) const { return entries_.contains(name); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  struct Entry {
    std::uint64_t incarnation = 0;
    std::uint64_t next_sequence = 0;
    friend bool operator==(Entry const&, Entry const&) = default;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;
  Window() = default;
  explicit Window(Entries entries) : entries_(std::move(entries)) {}
  [[nodiscard]] Entries const& entries() const { return entries_; }

 private:
  Entries entries_;
};

}  // namespace chorus::parameters
