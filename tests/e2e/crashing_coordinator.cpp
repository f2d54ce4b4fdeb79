// A coordinator that kills itself with SIGKILL at the n-th of the points where a crash matters: before and after every
// write of its journal and whatever it says to workers about epochs, runs and commits. Otherwise it is
// chorus-coordinator.
//
//   crashing_coordinator JOURNAL PORT N
#include <signal.h>
#include <spdlog/sinks/null_sink.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <charconv>
#include <iostream>
#include <random>
#include <string_view>

#include "server/coordinator/coordinator.hpp"

using namespace chorus;

namespace {

std::uint32_t number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto const last = number(argv[3]);
  boost::asio::io_context io(1);
  coordinator::CoordinatorOptions options;
  options.failpoint = [last, passed = std::uint32_t{0}](std::string_view) mutable {
    if (++passed == last) ::kill(::getpid(), SIGKILL);
  };
  std::random_device device;
  auto const random = [&device] { return std::uint64_t{device()} << 32 | device(); };
  auto const log = std::make_shared<spdlog::logger>("coordinator", std::make_shared<spdlog::sinks::null_sink_mt>());
  coordinator::Coordinator coordinator(io.get_executor(), options, coordinator::JournalFile::open(argv[1]).value(),
                                       random, log);
  auto const port = coordinator.start("127.0.0.1", static_cast<std::uint16_t>(number(argv[2]))).value();
  std::cout << "listening on http://127.0.0.1:" << port << std::endl;
  io.run();  // until it is killed
}
