// The JSON form of a problem, as a message that the codec reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/json/codec.hpp"
#include "http/json/problem.hpp"

namespace chorus::http {

struct ProblemText {
  std::string type, title;
  std::uint32_t status = 0;
  std::string detail;
  std::optional<std::string> instance;
  std::string code;
  bool retryable = false;
  std::optional<std::uint32_t> retry_after_s;
  std::optional<std::vector<std::uint32_t>> ranks;
  std::optional<std::vector<FieldError>> errors;
  std::optional<std::string> trace_id;
};

[[nodiscard]] ProblemText to_text(Problem const& problem);
[[nodiscard]] Problem from_text(ProblemText text);  // an unknown code becomes `internal`, with the text kept

[[nodiscard]] codec::TypeCodec const& problem_text_codec();

}  // namespace chorus::http
