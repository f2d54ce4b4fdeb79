// Epoch numbers per group name. A number is never given twice, even if the group was deleted and made again, so no two
// workers can run different memberships under one epoch.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "server/coordinator/journal/journal_state.hpp"

namespace chorus::coordinator {

class Epochs {
 public:
  // `names_kept`: number of deleted groups whose names are kept. Above it the oldest name is forgotten, and unknown
  // names begin above its epoch.
  explicit Epochs(std::size_t names_kept) : names_kept_(names_kept) {}

  // The next number of this name; 1 for a new one.
  [[nodiscard]] std::uint32_t next(std::string const& name);

  // True if an epoch was drawn for the name, and the name is not forgotten.
  [[nodiscard]] bool knows(std::string const& name) const { return last_.contains(name); }

  [[nodiscard]] bool knows_any() const { return !last_.empty(); }

  // A member has seen this number: later numbers are higher.
  void seen(std::string const& name, std::uint32_t epoch);

  // The group was deleted. Returns the name that is forgotten in exchange, if any: then the floor has changed.
  std::optional<std::string> retire(std::string const& name);

  // Returns the row for the journal; rows are restored in any order.
  [[nodiscard]] JournalEpoch kept(std::string const& name) const;
  [[nodiscard]] std::uint32_t floor() const { return floor_; }
  void restore(std::map<std::string, JournalEpoch> const& kept, std::uint32_t floor);

 private:
  std::uint32_t& last(std::string const& name);

  std::size_t const names_kept_;
  std::uint32_t floor_ = 0;
  std::map<std::string, std::uint32_t> last_;
  std::deque<std::string> retired_;                   // oldest first; every name once
  std::map<std::string, std::uint64_t> retirements_;  // position in the order of deletions
  std::uint64_t next_retirement_ = 1;
};

}  // namespace chorus::coordinator
