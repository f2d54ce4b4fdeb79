// What the members of an epoch are told: one JSON text for all, and a few bytes of their own for each. So a group of p
// members takes memory for p of them, not for p times p.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/api/collectives/groups.hpp"

namespace chorus::coordinator {

class EpochMessage {
 public:
  // token: hex, presented by the links between members.
  EpochMessage(api::Group group, std::string token);

  [[nodiscard]] std::string const& name() const { return name_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  // The api::GroupAssignment of a member is beginning(), then end_for() the member.
  [[nodiscard]] std::string_view beginning() const { return beginning_; }
  [[nodiscard]] std::string end_for(api::Member const& member) const;

 private:
  std::string name_;
  std::uint32_t epoch_ = 0;
  std::string token_;
  std::string beginning_;
};

}  // namespace chorus::coordinator
