#include "http/problem_text.hpp"

#include <utility>

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
  if (readable && !(text.code.empty() && text.detail.empty() && text.title.empty())) return from_text(std::move(text));
  constexpr std::size_t quoted_bytes = 200;
  return {ProblemCode::internal, "status " + std::to_string(status) + ": " + std::string(body.substr(0, quoted_bytes))};
}

}  // namespace chorus::http
