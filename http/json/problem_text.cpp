#include "http/json/problem_text.hpp"

#include <utility>

#include "base/printable.hpp"

namespace chorus::http {

BOOST_DESCRIBE_STRUCT(FieldError, (), (pointer, detail))
BOOST_DESCRIBE_STRUCT(ProblemText, (),
                      (type, title, status, detail, instance, code, retryable, retry_after_s, ranks, errors, trace_id))

ProblemText to_text(Problem const& problem) {
  auto const& kind_of = kind(problem.code);
  ProblemText text;
  text.type = "/problems/" + std::string(kind_of.name);
  text.title = kind_of.title;
  text.status = kind_of.status;
  text.detail = problem.detail;
  if (!problem.instance.empty()) text.instance = problem.instance;
  text.code = kind_of.name;
  text.retryable = kind_of.retryable;
  text.retry_after_s = problem.retry_after_s;
  if (!problem.ranks.empty()) text.ranks = problem.ranks;
  if (!problem.errors.empty()) text.errors = problem.errors;
  if (!problem.trace_id.empty()) text.trace_id = problem.trace_id;
  return text;
}

Problem from_text(ProblemText text) {
  Problem problem;
  auto const code = parse_problem_code(text.code);
  problem.code = code.value_or(ProblemCode::internal);
  problem.detail = std::move(text.detail);
  if (!code) {
    if (problem.detail.empty()) problem.detail = std::move(text.title);
    if (!text.code.empty()) problem.detail = text.code + ": " + problem.detail;
  }
  problem.instance = std::move(text.instance).value_or("");
  problem.retry_after_s = text.retry_after_s;
  problem.ranks = std::move(text.ranks).value_or(std::vector<std::uint32_t>());
  problem.errors = std::move(text.errors).value_or(std::vector<FieldError>());
  problem.trace_id = std::move(text.trace_id).value_or("");
  return problem;
}

codec::TypeCodec const& problem_text_codec() { return codec::codec<ProblemText>; }

std::string to_json(Problem const& problem) {
  auto const text = to_text(problem);
  std::string out;
  codec::write(problem_text_codec(), &text, out);
  return out;
}

Problem problem_from_json(std::string_view body, unsigned status) {
  ProblemText text;
  auto const unreadable =
      codec::read(problem_text_codec(), &text, body, UnknownFields::ignore, json_answer_limit_bytes);
  auto const readable = !unreadable || unreadable->code == ProblemCode::invalid_field;
  // The text gets into a line of a log or on a terminal, so it is quoted safely.
  auto const quoted = [](std::string_view foreign) {
    constexpr std::size_t quoted_bytes = 200;
    return printable(excerpt(foreign, quoted_bytes));
  };
  if (!readable || (text.code.empty() && text.detail.empty() && text.title.empty())) {
    bool const is_of_proxy = status >= 502 && status <= 504;
    return {is_of_proxy ? ProblemCode::unavailable : ProblemCode::internal,
            "status " + std::to_string(status) + ": " + quoted(body)};
  }
  auto const is_ours = parse_problem_code(text.code).has_value();
  auto problem = from_text(std::move(text));
  if (!is_ours) problem.detail = quoted(problem.detail);
  return problem;
}

}  // namespace chorus::http
