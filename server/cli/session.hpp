// What every command works with, and how it ends.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "http/problem.hpp"

namespace chorus::cli {

// The exit codes of the process; scripts rely on them.
enum class ExitCode : int {
  ok = 0,
  failed = 1,       // what was asked for failed: the problem is printed
  usage = 2,        // the command line is wrong: nothing was done
  unreachable = 3,  // no coordinator answered
};

// What the coordinator gets to see of whoever calls it. All of them paths, "" for none.
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

// A question to the coordinator that had no good answer.
struct Failure {
  http::Problem problem;
  bool reachable = true;
};

// For people on err: "error: TITLE: DETAIL (CODE)" and one line per field error. As JSON on out.
[[nodiscard]] ExitCode report(Session const& session, Failure const& failure);
[[nodiscard]] ExitCode report(Session const& session, http::Problem const& problem);

// A command line that parses and yet makes no sense.
[[nodiscard]] ExitCode report_usage(Session const& session, std::string_view what);

}  // namespace chorus::cli
