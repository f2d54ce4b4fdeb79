// Epoch numbers per group name. A number is never given twice, also after the group was deleted and made again, so no
// two workers can ever run different memberships under one epoch.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "server/coordinator/kept.hpp"

namespace chorus::coordinator {

class Epochs {
 public:
  // names_kept: of deleted groups. Above it the oldest name is forgotten, and names that are not known begin above its
  // epoch.
  explicit Epochs(std::size_t names_kept) : names_kept_(names_kept) {}

  // The next number of this name; 1 for a new one.
  [[nodiscard]] std::uint32_t next(std::string const& name);

  // Has it ever been drawn for, or deleted and not forgotten?
  [[nodiscard]] bool knows(std::string const& name) const { return last_.contains(name); }

  // A member has seen this number: continue above it.
  void seen(std::string const& name, std::uint32_t epoch);

  // The group was deleted. Gives the name that is forgotten instead, if there is one: the floor has then changed.
  std::optional<std::string> retire(std::string const& name);

  // For the journal, and back, in any order.
  [[nodiscard]] KeptEpoch kept(std::string const& name) const;
  [[nodiscard]] std::uint32_t floor() const { return floor_; }
  void restore(std::map<std::string, KeptEpoch> const& kept, std::uint32_t floor);

 private:
  std::uint32_t& last(std::string const& name);

  std::size_t const names_kept_;
  std::uint32_t floor_ = 0;
  std::map<std::string, std::uint32_t> last_;
  std::deque<std::string> retired_;                   // oldest first; every name once
  std::map<std::string, std::uint64_t> retirements_;  // the how-manieth it was
  std::uint64_t next_retirement_ = 1;
};

}  // namespace chorus::coordinator
