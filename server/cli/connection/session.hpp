// The data that every command works with, and the ways in which it ends.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::cli {

// The exit codes of the process; scripts rely on them.
enum class ExitCode : int {
  ok = 0,
  failed = 1,       // the operation failed: the problem is printed
  usage = 2,        // the command line is wrong: nothing was done
  unreachable = 3,  // no coordinator answered
};

// Credentials that are shown to the coordinator. All members are paths, "" for none.
struct Credentials {
  std::string token_file;
  std::string tls_authorities;  // "": those of the system
  std::string tls_certificate;
  std::string tls_key;
};

struct Session {
  std::string coordinator = "http://127.0.0.1:7070";
  Credentials credentials;
  bool json = false;  // answers and problems as JSON on `out`, one object per line
  std::ostream& out;
  std::ostream& err;
};

// The session of a command whose result has the standard output for itself: answers and problems go to `err`.
[[nodiscard]] inline Session aside(Session const& session) {
  return {session.coordinator, session.credentials, session.json, session.err, session.err};
}

// A request to the coordinator that failed.
struct Failure {
  http::Problem problem;
  bool reachable = true;
  std::string location = {};  // target of a redirect that was not followed
  bool is_local = false;      // not reported by a service: for example, a local file cannot be written
  bool may_be_done = false;   // the answer was lost: the service may have carried the request out
};

// Prints to err for people: "error: TITLE: DETAIL (CODE)" and one line per field error. Prints JSON to out.
[[nodiscard]] ExitCode report(Session const& session, Failure const& failure);
[[nodiscard]] ExitCode report(Session const& session, http::Problem const& problem);

// Reports a command line that parses but makes no sense.
[[nodiscard]] ExitCode report_usage(Session const& session, std::string_view what);

}  // namespace chorus::cli
