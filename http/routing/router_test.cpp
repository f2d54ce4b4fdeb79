#include "http/routing/router.hpp"

#include <doctest/doctest.h>

#include "http/routing/paging.hpp"

using namespace chorus::http;

namespace {

boost::asio::awaitable<Response> nothing(Request const&, Body&) { co_return Response(204); }

Router table() {
  Router router;
  router.add(Method::get, "/", Access::read, nothing);
  router.add(Method::get, "/v1/tensors", Access::read, nothing);
  router.add(Method::get, "/v1/tensors/{name}", Access::read, nothing);
  router.add(Method::put, "/v1/tensors/{name}", Access::read, nothing);
  router.add(Method::delete_, "/v1/tensors/{name}", Access::read, nothing);
  router.add(Method::post, "/v1/groups/{group}/{op}", Access::read, nothing);
  router.add(Method::post, "/v1/groups/{group}/barrier", Access::read, nothing);
  router.add(Method::get, "/v1/groups/mine/{op}", Access::read, nothing);
  return router;
}

struct Found {
  std::string pattern;
  Request request;
  Problem problem;
  std::string allow;
  bool handled;
};

Found find(Method method, std::string const& target) {
  static_assert(std::is_copy_constructible_v<Router>);
  auto const router = table();
  Found found;
  found.request.method = method;
  found.request.target = target;
  found.request.path = target;
  auto const match = router.match(found.request);
  found.pattern = match.pattern;
  found.problem = match.problem;
  found.allow = match.allow;
  found.handled = match.handler != nullptr;
  return found;
}

}  // namespace

TEST_CASE("a path finds its pattern and fills the parameters") {
  CHECK(find(Method::get, "/").pattern == "/");
  CHECK(find(Method::get, "/v1/tensors").pattern == "/v1/tensors");
  auto const tensor = find(Method::put, "/v1/tensors/w?x=/y");
  CHECK(tensor.pattern == "/v1/tensors/{name}");
  CHECK(tensor.request.parameter("name") == "w");
  auto const call = find(Method::post, "/v1/groups/g/all_reduce");
  CHECK(call.request.parameter("group") == "g");
  CHECK(call.request.parameter("op") == "all_reduce");
}

TEST_CASE("an encoded slash is part of a name") {
  CHECK(find(Method::get, "/v1/tensors/grad%2F0").request.parameter("name") == "grad/0");
  CHECK(!find(Method::get, "/v1/tensors/grad/0").handled);
  CHECK(!find(Method::get, "/v1%2Ftensors").handled);
}

TEST_CASE("a literal segment precedes a {name}, separately for each method") {
  CHECK(find(Method::post, "/v1/groups/mine/barrier").pattern == "/v1/groups/{group}/barrier");
  CHECK(find(Method::post, "/v1/groups/mine/all_reduce").pattern == "/v1/groups/{group}/{op}");
  CHECK(find(Method::get, "/v1/groups/mine/barrier").pattern == "/v1/groups/mine/{op}");
}

TEST_CASE("GET answers HEAD") {
  CHECK(find(Method::head, "/v1/tensors/w").handled);
  CHECK(!find(Method::head, "/v1/groups/g/all_reduce").handled);
}

TEST_CASE("an unknown path is not found, and the problem says the path") {
  for (auto const* path :
       {"/v2", "/v1/tensors/", "/v1/tensors/w/x", "//", "/v1//tensors", "/V1/tensors", "/v1/tensors/."}) {
    INFO(std::string(path));
    auto const found = find(Method::get, path);
    if (std::string_view(path).ends_with('.')) {
      CHECK(found.request.parameter("name") == ".");
      continue;
    }
    CHECK(!found.handled);
    CHECK(found.problem.code == ProblemCode::not_found);
    CHECK(found.problem.detail.find(path) != std::string::npos);
    CHECK(found.allow.empty());
    CHECK(found.pattern.empty());
  }
}

TEST_CASE("a wrong method gets the right ones in Allow") {
  auto const found = find(Method::post, "/v1/tensors/w");
  CHECK(!found.handled);
  CHECK(found.problem.code == ProblemCode::method_not_allowed);
  CHECK(found.allow == "GET, HEAD, PUT, DELETE");
  CHECK(found.pattern == "/v1/tensors/{name}");
  CHECK(find(Method::other, "/v1/tensors").allow == "GET, HEAD");
  CHECK(find(Method::get, "/v1/groups/g/barrier").allow == "POST");
}

TEST_CASE("a number in the query is within its limit or named in a problem") {
  Request request;
  request.query = {{"limit", "10"}, {"negative", "-1"}, {"empty", ""}, {"big", "18446744073709551616"}, {"text", "1x"}};
  CHECK(request.query_number("limit", 10).value() == 10);
  CHECK(request.query_number("absent", 10).value() == std::nullopt);
  for (auto const* name : {"negative", "empty", "big", "text"}) {
    auto const number = request.query_number(name, UINT64_MAX);
    REQUIRE(number.has_error());
    CHECK(number.error().code == ProblemCode::bad_request);
    CHECK(number.error().detail.find(name) != std::string::npos);
  }
  CHECK(request.query_number("limit", 9).has_error());
}

TEST_CASE("every wrong limit of a page is answered with the same bounds") {
  for (std::string const text : {"0", "1001", "-1", "x", ""}) {
    CAPTURE(text);
    Request request;
    request.query = {{"limit", text}};
    CHECK(page_of(request).error().detail ==
          "query parameter 'limit' is '" + text + "', expected a number from 1 to 1000");
  }
  Request request;
  request.query = {{"limit", "1000"}};
  CHECK(page_of(request)->limit == 1000);
}

TEST_CASE("header fields keep their order and compare without case") {
  Fields fields;
  fields.add("Accept", "a");
  fields.add("accept", "b");
  CHECK(fields.count("ACCEPT") == 2);
  CHECK(fields.find("aCCept") == "a");
  fields.set("Accept", "c");
  CHECK(fields.count("accept") == 1);
  CHECK(fields.find("Accept") == "c");
  CHECK(fields.find("Accep") == std::nullopt);
}

TEST_CASE("{name...} takes the rest of the path, whether its slashes are escaped or not") {
  Router router;
  auto const nothing = [](Request const&, Body&) -> boost::asio::awaitable<Response> { co_return Response(204); };
  router.add(Method::get, "/v1/tensors", Access::read, nothing);
  router.add(Method::get, "/v1/tensors/{name...}", Access::read, nothing);
  auto const name_at = [&](std::string target) -> std::string {
    Request request;
    request.method = Method::get;
    request.target = target;
    request.path = target;
    auto const match = router.match(request);
    if (match.handler == nullptr) return "none";
    return request.parameters.empty() ? "" : std::string(request.parameter("name"));
  };
  CHECK(name_at("/v1/tensors/grad/0") == "grad/0");
  CHECK(name_at("/v1/tensors/grad%2F0") == "grad/0");
  CHECK(name_at("/v1/tensors/x") == "x");
  CHECK(name_at("/v1/tensors") == "");
  CHECK(name_at("/v1/tensors/") == "none");
  CHECK(name_at("/v1/tensors/a//b") == "none");
}

TEST_CASE("a route with declared query parameters refuses others, and duplicates") {
  auto router = table();
  router.restrict_query(Method::get, "/v1/tensors", {"limit", "validate_only"});
  auto const refusal = [&](std::string const& path, std::vector<std::pair<std::string, std::string>> query) {
    Request request;
    request.target = request.path = path;
    request.query = std::move(query);
    auto const match = router.match(request);
    auto const problem = check_query(request, match);
    return problem ? problem->detail : "";
  };
  CHECK(refusal("/v1/tensors", {}) == "");
  CHECK(refusal("/v1/tensors", {{"limit", "x"}, {"validate_only", ""}}) == "");
  CHECK(refusal("/v1/tensors", {{"validate-only", "true"}}) ==
        "query parameter 'validate-only': unknown; did you mean 'validate_only'?");
  CHECK(refusal("/v1/tensors", {{"limit", "1"}, {"zzzzzz", "secret"}}) ==
        "query parameter 'zzzzzz': unknown; /v1/tensors has limit, validate_only");
  CHECK(refusal("/v1/tensors", {{"limit", "1"}, {"limit", "2"}}) == "query parameter 'limit': given twice");
  CHECK(refusal("/v1/tensors/{name}", {{"whatever", "1"}}) == "");
  router.restrict_query(Method::get, "/", {});
  CHECK(refusal("/", {{"x", ""}}) == "query parameter 'x': unknown; / has none");
}
