// Epoch numbers per group name. A number is never given twice, also after the group was deleted and made again, so no
// two workers can ever run different memberships under one epoch.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace chorus::coordinator {

class Epochs {
 public:
  // names_kept: of deleted groups. Above it the oldest name is forgotten, and names that are not known begin above its
  // epoch.
  explicit Epochs(std::size_t names_kept) : names_kept_(names_kept) {}

  // The next number of this name; 1 for a new one.
  [[nodiscard]] std::uint32_t next(std::string const& name);

  // A member has seen this number: continue above it.
  void seen(std::string const& name, std::uint32_t epoch);

  // The group was deleted.
  void retire(std::string const& name);

 private:
  std::uint32_t& last(std::string const& name);

  std::size_t const names_kept_;
  std::uint32_t floor_ = 0;
  std::map<std::string, std::uint32_t> last_;
  std::deque<std::string> retired_;  // oldest first; every name once
};

}  // namespace chorus::coordinator
