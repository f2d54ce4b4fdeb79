// Which pushes a shard has seen: so that one that is sent again is applied once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace chorus::parameters {

// Who pushes. A name with a higher incarnation is a client that has started again: it begins at sequence 0, and what
// its former life still has under way is refused. Without an incarnation it is 0.
struct Client {
  std::string name;
  std::uint64_t incarnation = 0;
  friend bool operator==(Client const&, Client const&) = default;
};

// A client's sequence numbers begin at 0 and grow by one. Pushes are applied in their order, so one number per client
// is all there is to remember. A value.
class Window {
 public:
  enum class Place {
    next,    // nothing before it is missing
    seen,    // it was applied
    ahead,   // others come first
    fenced,  // from a former life
  };
  [[nodiscard]] Place place(Client const& client, std::uint64_t sequence) const;
  // What was `next` has been applied.
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
