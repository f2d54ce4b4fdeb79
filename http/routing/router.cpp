#include "http/routing/router.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "collectives/core/nearest_name.hpp"
#include "http/message/target.hpp"

namespace chorus::http {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  path.remove_prefix(std::min<std::size_t>(1, path.size()));
  for (;;) {
    auto const segment = path.substr(0, path.find('/'));
    segments.push_back(segment);
    if (segment.size() == path.size()) return segments;
    path.remove_prefix(segment.size() + 1);
  }
}

bool is_parameter(std::string_view segment) { return segment.starts_with('{'); }

// Matches "{name...}" at the end of a pattern: the rest of the path.
bool is_rest(std::string_view segment) { return segment.starts_with('{') && segment.ends_with("...}"); }

bool fits(std::vector<std::string> const& pattern, bool takes_rest, std::vector<std::string> const& path) {
  if (takes_rest ? path.size() < pattern.size() : path.size() != pattern.size()) return false;
  auto const last = pattern.size() - 1;
  for (std::size_t i = 0; i < path.size(); ++i) {
    auto const& want = pattern[std::min(i, last)];
    if (is_parameter(want) ? path[i].empty() : want != path[i]) return false;
  }
  return true;
}

// A literal segment precedes a {name}; the leftmost difference decides.
bool more_specific(std::vector<std::string> const& a, std::vector<std::string> const& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (is_parameter(a[i]) != is_parameter(b[i])) return is_parameter(b[i]);
  return is_rest(b.back()) && !is_rest(a.back());
}

std::string joined(std::vector<std::string> const& parts, std::size_t begin, std::string_view between) {
  auto text = parts[begin];
  for (auto i = begin + 1; i < parts.size(); ++i) (text += between) += parts[i];
  return text;
}

// Segments are split before they are decoded: "%2F" is part of a name.
std::optional<std::vector<std::string>> decoded_segments(Request const& request) {
  auto const path = request.target.empty() ? std::string_view(request.path) : raw_path(request.target);
  std::vector<std::string> segments;
  auto const parts = split(path);
  segments.reserve(parts.size());
  for (auto segment : parts) {
    if (request.target.empty()) {
      segments.emplace_back(segment);
      continue;
    }
    auto decoded = percent_decoded(segment);
    if (!decoded) return std::nullopt;
    segments.push_back(std::move(*decoded));
  }
  return segments;
}

}  // namespace

void Router::add(Method method, std::string_view pattern, Access access, Handler handler) {
  CHORUS_ASSERT(method != Method::head && method != Method::other, "HEAD is answered by GET");
  CHORUS_ASSERT(pattern.starts_with('/'), "a pattern begins with '/'");
  Route route{method, std::string(pattern), {}, false, access, std::move(handler), std::nullopt};
  for (auto segment : split(pattern)) {
    CHORUS_ASSERT(!is_parameter(segment) || (segment.size() > 2 && segment.ends_with('}')), "a parameter is {name}");
    route.segments.emplace_back(segment);
  }
  route.takes_rest = is_rest(route.segments.back());
  add(std::move(route));
}

void Router::add(Router routes, std::function<Handler(Handler)> const& made) {
  for (auto& route : routes.routes_) {
    route.handler = made(std::move(route.handler));
    add(std::move(route));
  }
}

void Router::add(Route route) {
  for (auto const& other : routes_)
    CHORUS_ASSERT(other.method != route.method || other.pattern != route.pattern, "the route exists already");
  routes_.push_back(std::move(route));
}

void Router::restrict_query(Method method, std::string_view pattern, std::vector<std::string> names) {
  auto const route = std::ranges::find_if(
      routes_, [&](Route const& known) { return known.method == method && known.pattern == pattern; });
  CHORUS_ASSERT(route != routes_.end(), "there is no such route");
  route->query = std::move(names);
}

Router::Match Router::match(Request& request) const {
  Match match;
  auto const path = decoded_segments(request);
  auto const wanted = request.method == Method::head ? Method::get : request.method;
  Route const* best = nullptr;
  for (auto const& route : routes_)
    if (route.method == wanted && path && fits(route.segments, route.takes_rest, *path) &&
        (best == nullptr || more_specific(route.segments, best->segments)))
      best = &route;
  if (best == nullptr) return refuse(request, path);
  match.handler = &best->handler;
  match.access = best->access;
  match.pattern = best->pattern;
  if (best->query) match.query = &*best->query;
  request.parameters.clear();
  for (std::size_t i = 0; i < best->segments.size(); ++i) {
    auto const& segment = best->segments[i];
    if (is_rest(segment))
      request.parameters.emplace_back(segment.substr(1, segment.size() - 5), joined(*path, i, "/"));
    else if (is_parameter(segment))
      request.parameters.emplace_back(segment.substr(1, segment.size() - 2), (*path)[i]);
  }
  return match;
}

std::vector<Router::Entry> Router::entries() const {
  std::vector<Entry> all;
  for (auto const& route : routes_) all.push_back({route.method, route.pattern, route.access});
  return all;
}

Router::Match Router::refuse(Request const& request, std::optional<std::vector<std::string>> const& path) const {
  Match match;
  for (auto const& route : routes_) {
    if (!path || !fits(route.segments, route.takes_rest, *path)) continue;
    if (auto const method = std::string(name(route.method)); match.allow.find(method) == std::string::npos) {
      match.allow += (match.allow.empty() ? "" : ", ") + method;
      if (route.method == Method::get) match.allow += ", HEAD";
    }
    if (match.pattern.empty()) match.pattern = route.pattern;
  }
  match.problem = match.allow.empty()
                      ? Problem(ProblemCode::not_found, "there is nothing at " + request.path)
                      : Problem(ProblemCode::method_not_allowed, request.path + " has only " + match.allow);
  return match;
}

std::optional<Problem> check_query(Request const& request, Router::Match const& match) {
  if (match.query == nullptr) return std::nullopt;
  std::vector<std::string_view> const names(match.query->begin(), match.query->end());
  for (auto given = request.query.begin(); given != request.query.end(); ++given) {
    auto const& name = given->first;
    auto const quoted = "query parameter '" + name.substr(0, 64) + "': ";
    if (std::ranges::find(names, name) == names.end()) {
      auto const meant = nearest_name(name, names);
      auto const has = names.empty() ? std::string(" has none") : " has " + joined(*match.query, 0, ", ");
      return Problem(ProblemCode::bad_request, quoted + "unknown" +
                                                   (meant.empty() ? "; " + std::string(match.pattern) + has
                                                                  : "; did you mean '" + std::string(meant) + "'?"));
    }
    if (std::any_of(request.query.begin(), given, [&](auto const& other) { return other.first == name; }))
      return Problem(ProblemCode::bad_request, quoted + "given twice");
  }
  return std::nullopt;
}

}  // namespace chorus::http
