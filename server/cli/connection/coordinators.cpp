#include "server/cli/connection/coordinators.hpp"

#include <future>

#include "server/cli/connection/client.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::milliseconds answer_patience{2000};
constexpr std::string_view asked_path = "/v1";

CoordinatorAnswer ask_coordinator(Session const& session, std::string url) {
  CoordinatorAnswer answer;
  Client const client(session, url, "it");
  auto const reply = client.send({.path = std::string(asked_path), .patience = answer_patience, .follows = false});
  answer.url = std::move(url);
  answer.state = "leads";
  if (reply) return answer;
  auto const& failure = reply.error();
  if (failure.problem.code == http::ProblemCode::not_leader) {
    answer.state = "standby";
    answer.leader = failure.location;
    if (answer.leader.ends_with(asked_path)) answer.leader.erase(answer.leader.size() - asked_path.size());
    return answer;
  }
  answer.state = failure.reachable ? "unavailable" : "unreachable";
  answer.why =
      failure.problem.detail.empty() ? std::string(http::kind(failure.problem.code).title) : failure.problem.detail;
  return answer;
}

}  // namespace

std::vector<CoordinatorAnswer> ask_coordinators(Session const& session) {
  std::vector<std::future<CoordinatorAnswer>> asked;
  for (auto const& url : split_services(session.coordinator))
    asked.push_back(std::async(std::launch::async, ask_coordinator, std::cref(session), url));
  std::vector<CoordinatorAnswer> answers;
  for (auto& one : asked) answers.push_back(one.get());
  return answers;
}

std::string format_answer(CoordinatorAnswer const& answer) {
  auto text = answer.url + ": " + answer.state;
  if (!answer.leader.empty()) text += ", " + answer.leader + " leads";
  if (!answer.why.empty()) text += ", " + answer.why;
  return text;
}

}  // namespace chorus::cli
