#include "base/runtime/environment.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

namespace chorus::http {
namespace {

void say(std::string_view name, std::string_view what) { std::cerr << name << ": " << what << '\n'; }

std::string reason_of(std::string const& what, std::error_code code) {
  auto const is_short_of_files = code == std::errc::too_many_files_open;
  return what + (is_short_of_files ? "; ulimit -n says how many this process may have" : "");
}

// Returns the message of the exception being handled if the system refused a resource. Boost's system_error does not
// derive from std::system_error.
std::optional<std::string> refusal() {
  try {
    throw;
  } catch (std::system_error const& error) {
    return reason_of(error.what(), error.code());
  } catch (boost::system::system_error const& error) {
    return reason_of(error.what(), error.code());
  } catch (std::bad_alloc const&) { return "there is no memory"; } catch (...) {
    return std::nullopt;
  }
}

}  // namespace

void ignore_service_links() {
  auto const* const port = std::getenv("CHORUS_PORT");
  if (port != nullptr && std::string_view(port).starts_with("tcp://")) ::unsetenv("CHORUS_PORT");
}

std::size_t prepare_for_connections(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<std::size_t>(wanted, 512);
  auto const raised = rlimit{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2);
}

void ignore_signals_of_writes() {
  std::signal(SIGPIPE, SIG_IGN);
  ignore_file_size_signal();
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

std::vector<int> ending_signals() {
  std::vector<int> signals{SIGTERM, SIGINT};
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

void expect_no_more_signals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_IGN);
}

void explain_failures() {
  std::set_terminate([] {
    if (auto const failure = std::current_exception()) {
      try {
        std::rethrow_exception(failure);
      } catch (...) {
        if (auto const why = refusal()) {
          say(program_invocation_short_name, *why);
          std::_Exit(1);
        }
      }
    }
    __gnu_cxx::__verbose_terminate_handler();
  });
}

int run_command(std::string_view name, std::function<int()> const& command) {
  try {
    auto const status = command();
    std::cout.flush();
    return status;
  } catch (std::ios_base::failure const&) {
    auto const why = std::generic_category().message(errno);
    std::cout.exceptions(std::ios::goodbit);  // or the flush before writing to std::cerr throws
    say(name, "the output could not be written: " + why);
    return 1;
  } catch (...) {
    auto const why = refusal();
    if (!why) throw;
    say(name, *why);
    return 1;
  }
}

void throw_on_lost_output() { std::cout.exceptions(std::ios::badbit | std::ios::failbit); }

}  // namespace chorus::http
