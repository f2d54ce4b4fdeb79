#include "tests/support/faults/network_hosts.hpp"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace chorus::testing {
namespace {

std::string namespace_of(std::string const& process) {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/net", failure);
}

}  // namespace

NetworkHosts::NetworkHosts(std::size_t count) {
  for (auto const* program : {"/usr/sbin/ip", "/usr/sbin/iptables", "/usr/bin/nsenter"})
    if (::access(program, X_OK) != 0) missing_ = std::string(program) + " is not installed";
  if (!missing_.empty()) return;
  if (::unshare(CLONE_NEWNET) != 0) {
    missing_ = std::string("no network namespace: ") + std::strerror(errno);
    return;
  }
  run("ip link set lo up");
  run("ip link add bridge0 type bridge");
  run("ip address add " + own_address() + "/24 dev bridge0");
  run("ip link set bridge0 up");
  for (std::size_t i = 0; i < count && missing_.empty(); ++i) {
    hosts_.push_back(
        std::make_unique<Process>(std::vector<std::string>{"/usr/bin/unshare", "--net", "sleep", "infinity"}));
    auto const pid = std::to_string(hosts_.back()->pid());
    auto const has_own = [&] { return !namespace_of(pid).empty() && namespace_of(pid) != namespace_of("self"); };
    if (!eventually(has_own)) missing_ = "no network namespace for host " + std::to_string(i);
    auto const link = "host" + std::to_string(i);
    run("ip link add " + link + " type veth peer name eth0 netns " + pid);
    run("ip link set " + link + " master bridge0 up");
    run(within(i) + "ip link set lo up");
    run(within(i) + "ip address add " + address(i) + "/24 dev eth0");
    run(within(i) + "ip link set eth0 up");
  }
}

std::vector<std::string> NetworkHosts::on(std::size_t host, std::vector<std::string> arguments) const {
  std::vector<std::string> all{"/usr/bin/nsenter", "--net=/proc/" + std::to_string(hosts_.at(host)->pid()) + "/ns/net",
                               "--"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

void NetworkHosts::cut(std::size_t host, std::string const& from) {
  run(within(host) + "iptables -A INPUT -s " + from + " -j DROP");
  run(within(host) + "iptables -A OUTPUT -d " + from + " -j DROP");
}

void NetworkHosts::heal(std::size_t host) { run(within(host) + "iptables -F"); }

std::string NetworkHosts::within(std::size_t host) const {
  return "nsenter --net=/proc/" + std::to_string(hosts_.at(host)->pid()) + "/ns/net -- ";
}

bool NetworkHosts::run(std::string const& command) {
  if (!missing_.empty()) return false;
  if (std::system(command.c_str()) != 0) missing_ = "this failed: " + command;
  return missing_.empty();
}

}  // namespace chorus::testing
