#include "server/cli/connection/redirects.hpp"

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "server/cli/connection/connection.hpp"

namespace chorus::cli {
namespace {

constexpr std::size_t redirects_max = 5;

std::string text_of(http::Url const& url) { return origin_of(url) + url.path; }

}  // namespace

Redirects::Redirects(std::string who, std::string_view service, std::string const& path)
    : who_(std::move(who)), target_(http::parse_url(service).value()) {
  target_.path = (target_.path == "/" ? "" : target_.path) + path;
}

std::optional<Failure> Redirects::follow(std::string const& location) {
  auto const here = origin_of(target_);
  auto const next = http::parse_url(location.starts_with('/') ? here + location : location);
  if (!next) return unreachable("it redirects to '" + http::printable(location) + "', which is no URL");
  auto const there = origin_of(*next);
  if (target_.scheme == "https" && next->scheme != "https")
    return unreachable("it redirects to " + there + ", which is not encrypted");
  passed_.push_back(text_of(target_));
  bool const is_known = std::ranges::find(passed_, text_of(*next)) != passed_.end();
  if (is_known || passed_.size() > redirects_max)
    return Failure{.problem = {http::ProblemCode::unavailable,
                               "no coordinator leads at present: " + here + " redirects to " +
                                   (there == here ? std::string("itself") : there + ", which redirects as well")}};
  from_ = here;
  target_ = *next;
  return std::nullopt;
}

Failure Redirects::unreachable(std::string const& reason) const {
  auto text = "cannot reach " + who_ + " at " + origin_of(target_) + ": " + reason;
  if (!from_.empty()) text += "; " + from_ + " redirects to it";
  return {.problem = {http::ProblemCode::unavailable, text}, .reachable = false};
}

}  // namespace chorus::cli
