// The connections on which workers renew their leases: when a process dies its system closes them, which tells more
// quickly than a lease that ends.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

namespace chorus::coordinator {

// A value; as many entries as connections are open.
class LeaseConnections {
 public:
  struct Holder {
    std::string id;
    std::string incarnation;
  };

  // `remote` is the connection's, as in http::Request.
  void renewed(std::string const& remote, Holder holder) { holders_.insert_or_assign(remote, std::move(holder)); }

  // The connection has ended: whose was it?
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
