// Test support for the command line: runs the built program as a process, and imitates a coordinator.
#pragma once

#include <httplib.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace chorus::cli {

struct Run {
  int status = -1;
  std::string out;
  std::string err;
};

// Runs a program to its end; `environment` is its whole environment.
Run run_program(std::string const& program, std::vector<std::string> const& arguments,
                std::vector<std::string> environment = {});

// Runs the built `chorus`.
Run chorus(std::vector<std::string> const& arguments, std::vector<std::string> environment = {});

// A coordinator with prepared answers that records the requests.
class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();

  // Prepares the answer to a request like "GET /v1/workers?limit=1000", or with Last-Event-ID "GET /v1/events after 7".
  // Other requests get a 404 with an empty body.
  void answer(std::string const& question, int status, std::string body);
  // 307, as a standby answers.
  void redirect(std::string const& question, std::string const& location);
  [[nodiscard]] std::vector<std::string> questions();  // in order
  [[nodiscard]] std::string body_of(std::string const& question);

  std::string url;

 private:
  void reply(httplib::Request const& request, httplib::Response& response);

  std::mutex mutex_;
  std::map<std::string, std::pair<int, std::string>> answers_;
  std::map<std::string, std::string> locations_;  // of redirects
  std::vector<std::string> questions_;
  std::map<std::string, std::string> bodies_;
  httplib::Server server_;
  std::thread thread_;
};

// Runs the built `chorus` with this coordinator.
Run at(FakeCoordinator& coordinator, std::vector<std::string> const& arguments);

std::vector<std::string> lines_of(std::string const& text);

}  // namespace chorus::cli
