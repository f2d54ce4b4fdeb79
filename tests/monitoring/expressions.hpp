// What the files under metrics/ ask a Prometheus, made such that an answer can be expected.
#pragma once

#include <string>
#include <vector>

namespace chorus::testing {

struct Question {
  std::string asked_by;  // "chorus-links: Busy", for the message of a test that fails
  std::string expression;
};

// Every target of every panel, every annotation and every variable, with Grafana's variables filled in.
[[nodiscard]] std::vector<Question> dashboard_questions(std::string const& directory);

// What an alert compares, without the comparison: an alert that does not fire gives nothing, what it looks at has to
// give something, with labels that match. What is an hour ago is now, and what must not be there (unless) has to be.
[[nodiscard]] std::string without_condition(std::string expression);

}  // namespace chorus::testing
