// Set-up of the process for main(): environment variables, limits, signals and exit statuses.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace chorus::http {

// Removes CHORUS_PORT from the environment if Kubernetes set it: it sets NAME_PORT=tcp://ADDRESS:PORT for every
// Service, also for one called "chorus". To be called before threads are started and flags are parsed.
void ignore_service_links();

// Raises the limit of open descriptors to the hard limit. Returns how many connections a server may accept: half of the
// descriptors, at most `wanted`. The rest is left for the process's own calls.
[[nodiscard]] std::size_t prepare_for_connections(std::size_t wanted);

// Ignores SIGPIPE and SIGXFSZ: a write to a closed connection or pipe, or beyond the limit of file sizes (ulimit -f),
// returns an error instead of ending the process.
void ignore_signals_of_writes();
// Ignores only SIGXFSZ, for programs that end when the reader of their output has gone.
void ignore_file_size_signal();

// Signals at which a service finishes its work and ends: SIGTERM, SIGINT, and SIGHUP unless it is ignored (nohup).
[[nodiscard]] std::vector<int> ending_signals();
// To be called after the first ending signal: a further SIGTERM or SIGINT ends the process at once. SIGHUP is ignored,
// because a closed terminal may send it twice.
void expect_no_more_signals();

// For services: sets the terminate handler. If the system refused a resource (descriptors, threads, memory), the
// process says so on standard error and ends with status 1. Other uncaught exceptions end it with SIGABRT, as usual.
void explain_failures();

// For commands: runs `command` and returns its exit status. Returns 1, with a message on standard error, if the system
// refused a resource or, after throw_on_lost_output(), if output could not be written. The command's objects have been
// destroyed by then.
[[nodiscard]] int run_command(std::string_view name, std::function<int()> const& command);

// Makes std::cout throw when a write fails, at the latest at the flush at the end of run_command(): a command whose
// output is lost has failed.
void throw_on_lost_output();

}  // namespace chorus::http
