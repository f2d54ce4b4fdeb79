// The connections on which workers renew their leases. When a process dies, its system closes them, which shows the
// death earlier than the end of a lease.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

namespace chorus::coordinator {

// A value with one entry for each open connection.
class LeaseConnections {
 public:
  struct Holder {
    std::string id;
    std::string incarnation;
  };

  // `remote` is the remote end of the connection, as in http::Request.
  void renewed(std::string const& remote, Holder holder) { holders_.insert_or_assign(remote, std::move(holder)); }

  // The connection has ended. Returns the worker that used it.
  [[nodiscard]] std::optional<Holder> closed(std::string const& remote) {
    auto const found = holders_.find(remote);
    if (found == holders_.end()) return std::nullopt;
    auto holder = std::move(found->second);
    holders_.erase(found);
    return holder;
  }

 private:
  std::unordered_map<std::string, Holder> holders_;
};

}  // namespace chorus::coordinator
