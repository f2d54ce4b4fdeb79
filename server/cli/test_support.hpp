// For the tests of the command line: the built program as a process, and a coordinator that only pretends.
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

// Runs a program to its end; `environment` is all that it gets.
Run run_program(std::string const& program, std::vector<std::string> const& arguments,
                std::vector<std::string> environment = {});

// Runs the built `chorus`.
Run chorus(std::vector<std::string> const& arguments, std::vector<std::string> environment = {});

// Answers what it was told to, and remembers what it was asked.
class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();

  // "GET /v1/workers?limit=1000"; whatever was not told is a 404 with an empty body.
  void answer(std::string const& question, int status, std::string body);
  [[nodiscard]] std::vector<std::string> questions();  // in order
  [[nodiscard]] std::string body_of(std::string const& question);

  std::string url;

 private:
  void reply(httplib::Request const& request, httplib::Response& response);

  std::mutex mutex_;
  std::map<std::string, std::pair<int, std::string>> answers_;
  std::vector<std::string> questions_;
  std::map<std::string, std::string> bodies_;
  httplib::Server server_;
  std::thread thread_;
};

}  // namespace chorus::cli
