// Hosts in a network of the test: each is a network namespace with one address, all of them on one bridge.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace chorus::testing {

// From construction on, the calling thread and the processes that it starts are on the bridge. The namespaces end with
// the object, the bridge with the test.
class NetworkHosts {
 public:
  explicit NetworkHosts(std::size_t count);

  // Returns why such a network is not possible here, or "".
  [[nodiscard]] std::string const& missing() const { return missing_; }

  [[nodiscard]] std::string own_address() const { return "10.77.0.254"; }
  [[nodiscard]] std::string address(std::size_t host) const { return "10.77.0." + std::to_string(host + 1); }
  // Returns the command line that runs these arguments on this host.
  [[nodiscard]] std::vector<std::string> on(std::size_t host, std::vector<std::string> arguments) const;
  // Drops all packets between a host and an address from now on, silently.
  void cut(std::size_t host, std::string const& from);
  void heal(std::size_t host);

 private:
  bool run(std::string const& command);
  [[nodiscard]] std::string within(std::size_t host) const;

  std::vector<std::unique_ptr<Process>> hosts_;
  std::string missing_;
};

}  // namespace chorus::testing
