// A change of a group under way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/coordinator/cluster.hpp"

namespace chorus::coordinator {

// A PUT of a group, shared by the handler that waits for it and the task that does it.
struct Cluster::Change {
  Change(boost::asio::any_io_executor executor, std::string n, api::GroupRequest r)
      : name(std::move(n)), request(std::move(r)), changed(std::move(executor)) {}
  std::string name;
  api::GroupRequest request;
  // Not by a PUT, but to mend the group if it still needs it when its turn has come.
  bool mends = false;
  std::uint32_t broken_epoch = 0;
  [[nodiscard]] char const* reason() const { return !mends ? "request" : broken_epoch == 0 ? "members" : "trouble"; }
  http::Condition changed;
  std::optional<http::Checked<api::Group>> result;
  std::size_t pending = 0;
  std::vector<http::Problem> refusals;  // of this attempt
  std::uint32_t epoch_seen = 0;         // by any member that refused
};

}  // namespace chorus::coordinator
