// A coordinator that kills itself with SIGKILL at the n-th of the points where a crash matters: before and after every
// write of its journal, and before and after every message to workers about epochs, runs and commits. In all other
// respects it is chorus-coordinator.
//
//   crashing_coordinator JOURNAL PORT N
//   crashing_coordinator ETCD-URLS PORT N ARMED    one of several; counts only while there is a file ARMED
#include <signal.h>
#include <spdlog/sinks/null_sink.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string_view>

#include "server/coordinator/coordinator.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/leading.hpp"

using namespace chorus;

namespace {

std::uint32_t number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void announce(std::uint16_t port) { std::cout << "listening on http://127.0.0.1:" << port << std::endl; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  auto const port = static_cast<std::uint16_t>(number(argv[2]));
  auto const last = number(argv[3]);
  std::string const armed = argc == 5 ? argv[4] : "";
  boost::asio::io_context io(1);
  coordinator::CoordinatorOptions options;
  options.failpoint = [last, armed, passed = std::uint32_t{0}](std::string_view) mutable {
    if (!armed.empty() && ::access(armed.c_str(), F_OK) != 0) return;
    if (++passed == last) ::kill(::getpid(), SIGKILL);
  };
  std::random_device device;
  auto const random = [&device] { return std::uint64_t{device()} << 32 | device(); };
  auto const log = std::make_shared<spdlog::logger>("coordinator", std::make_shared<spdlog::sinks::null_sink_mt>());
  if (armed.empty()) {
    coordinator::Coordinator coordinator(io.get_executor(), options, coordinator::JournalFile::open(argv[1]).value(),
                                         random, log);
    announce(coordinator.start("127.0.0.1", port).value());
    io.run();  // until it is killed
    return 0;
  }
  options.lease = std::chrono::seconds(2);
  coordinator::LeadingOptions leading_options;
  leading_options.host = "127.0.0.1";
  leading_options.port = port;
  leading_options.etcd.endpoints = http::parse_services(argv[1]).value();
  coordinator::Leading leading(io.get_executor(), leading_options, options, random, log);
  announce(leading.start().value());
  boost::asio::co_spawn(io, leading.lead(), [](std::exception_ptr const&, int status) { std::quick_exit(status); });
  io.run();  // until it is killed
}
