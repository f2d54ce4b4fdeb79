// A real Prometheus, with the rules of this project, that scrapes the services of a test every second.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tests/support/held_port.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scratch_directory.hpp"

namespace chorus::testing {

class Prometheus {
 public:
  // The services' URLs. Listens on loopback and keeps its data in a directory that goes with it.
  Prometheus(std::vector<std::string> const& coordinators, std::vector<std::string> const& workers);

  // The samples of an instant query; an empty list if Prometheus refuses the expression, and why in `refusal`.
  [[nodiscard]] boost::json::array ask(std::string const& expression, std::string& refusal) const;
  // Whether there is a sample that is a number.
  [[nodiscard]] bool knows(std::string const& expression) const;
  // GET /api/v1/...; its `data`.
  [[nodiscard]] boost::json::value api(std::string const& path) const;

 private:
  ScratchDirectory directory_;
  HeldPort const port_;  // Prometheus cannot pick one itself
  Process process_;
};

}  // namespace chorus::testing
