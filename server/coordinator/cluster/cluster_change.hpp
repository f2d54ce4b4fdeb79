// A change of a group in progress.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/coordinator/cluster/cluster.hpp"

namespace chorus::coordinator {

// A PUT or DELETE of a group, shared by the handler that waits for it and the task that carries it out.
struct Cluster::Change {
  Change(boost::asio::any_io_executor executor, std::string n, api::GroupRequest r)
      : name(std::move(n)), request(std::move(r)), changed(std::move(executor)) {}
  std::string name;
  api::GroupRequest request;
  // True: no PUT, but a repair of the group, if it still needs one when its turn comes.
  bool mends = false;
  std::uint32_t broken_epoch = 0;
  bool erases = false;  // true: a DELETE, without a request
  [[nodiscard]] char const* reason() const { return !mends ? "request" : broken_epoch == 0 ? "members" : "trouble"; }
  http::Condition changed;
  std::optional<http::Checked<api::Group>> result;
};

}  // namespace chorus::coordinator
