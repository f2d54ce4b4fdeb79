// Which service of a list is asked after failures and redirects.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "http/client/turns.hpp"
#include "http/testing/desk.hpp"

using namespace chorus::http;
using namespace chorus::http::testing;

namespace {

// Services that redirect to another one, answer 200 or a problem, refuse connections, or are away behind a proxy.
struct Services {
  std::map<std::string, std::string> redirects;
  std::vector<std::string> leading;
  std::map<std::string, ProblemCode> refusing = {};
  std::map<std::string, unsigned> proxies = {};  // these answer with a status alone
  std::vector<std::string> asked = {};

  boost::asio::awaitable<chorus::Result<Answer>> answer(std::string url) {
    asked.push_back(url);
    auto const service = url.substr(0, url.rfind("/v1"));
    Answer answer;
    answer.status = 200;
    if (std::ranges::find(leading, service) != leading.end()) co_return answer;
    if (auto const why = refusing.find(service); why != refusing.end()) {
      answer.status = kind(why->second).status;
      answer.body = to_json(Problem(why->second, service + " refuses"));
      co_return answer;
    }
    if (auto const proxy = proxies.find(service); proxy != proxies.end()) {
      answer.status = proxy->second;
      answer.body = "<html>Bad gateway</html>";
      co_return answer;
    }
    auto const to = redirects.find(service);
    if (to == redirects.end()) co_return chorus::Error(HttpErrc::connect_failed, url);
    answer.status = 307;
    if (!to->second.empty()) answer.fields.set("Location", to->second + "/v1");
    co_return answer;
  }

  chorus::Result<Answer> send(Turns& turns) {
    asked.clear();
    Desk desk;
    auto const one = [this](Call sent, TimePoint) { return answer(std::move(sent.url)); };
    return desk.run(turns.send(call(Method::get, "http://c1/v1"), TimePoint(), one));
  }
};

}  // namespace

TEST_CASE("a redirect is followed, and the service that it names is asked first from then on") {
  Services services{.redirects = {{"http://c1", "http://c3"}}, .leading = {"http://c3"}};
  Turns turns({"http://c1", "http://c2"});
  CHECK(services.send(turns)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://c3/v1"});
  CHECK(services.send(turns)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c3/v1"});
}

TEST_CASE("a service that redirects to itself, to one that redirects back, or nowhere, is passed over") {
  Services services{.redirects = {{"http://c1", "http://c1"}}, .leading = {"http://c2"}};
  Turns itself({"http://c1", "http://c2"});
  CHECK(services.send(itself)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://c2/v1"});
  services.redirects = {{"http://c1", ""}};
  Turns nowhere({"http://c1", "http://c2"});
  CHECK(services.send(nowhere)->status == 200);
  services = {.redirects = {{"http://c1", "http://c2"}, {"http://c2", "http://c1"}}};
  Turns circle({"http://c1", "http://c2"});
  CHECK(services.send(circle)->status == 307);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://c2/v1"});
  services.leading = {"http://c2"};
  CHECK(services.send(circle)->status == 200);
}

TEST_CASE("a redirect from https to http is refused, and the next service is asked afterwards") {
  Services services{.redirects = {{"https://c1", "http://c3"}}, .leading = {"https://c2", "http://c3"}};
  Turns turns({"https://c1", "https://c2"});
  Desk desk;
  auto const one = [&](Call sent, TimePoint) { return services.answer(std::move(sent.url)); };
  auto const refused = desk.run(turns.send(call(Method::get, "https://c1/v1"), TimePoint(), one));
  CHECK(code_of(refused) == HttpErrc::tls_failed);
  CHECK(refused.error().detail == "https://c1 redirects to http://c3, which is not encrypted");
  CHECK(services.asked == std::vector<std::string>{"https://c1/v1"});
  CHECK(desk.run(turns.send(call(Method::get, "https://c1/v1"), TimePoint(), one))->status == 200);
  CHECK(services.asked.back() == "https://c2/v1");
}

TEST_CASE("a service that is unavailable is passed over, until all are; the first then says why") {
  Services services{.redirects = {{"http://c3", "http://c1"}},
                    .leading = {"http://c2"},
                    .refusing = {{"http://c1", ProblemCode::unavailable}}};
  Turns turns({"http://c1", "http://c2", "http://c3"});
  CHECK(services.send(turns)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://c2/v1"});
  CHECK(services.send(turns)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c2/v1"});
  services.leading.clear();  // c2 refuses connections now, and c3 still redirects to c1
  Turns none({"http://c1", "http://c2", "http://c3"});
  auto const refused = services.send(none);
  CHECK(refused->problem().detail == "http://c1 refuses");
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://c2/v1", "http://c3/v1"});
}

TEST_CASE("a service that is away behind a proxy is passed over, at once if it cannot have begun the request") {
  for (unsigned const status : {502, 504}) {
    Services services{.leading = {"http://c2"}, .proxies = {{"http://c1", status}}};
    Turns turns({"http://c1", "http://c2"});
    CHECK(services.send(turns)->status == status);
    CHECK(services.asked == std::vector<std::string>{"http://c1/v1"});
    CHECK(services.send(turns)->status == 200);
    CHECK(services.asked == std::vector<std::string>{"http://c2/v1"});
  }
  Services services{.leading = {"http://c2"}, .proxies = {{"http://c1", 503}}};
  Turns turns({"http://c1", "http://c2"});
  CHECK(services.send(turns)->status == 200);
}

TEST_CASE("another refusal is an answer, and of one service alone each is") {
  Services services{.refusing = {{"http://c1", ProblemCode::interrupted}}};
  Turns turns({"http://c1", "http://c2"});
  CHECK(services.send(turns)->status == 503);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1"});
  services.refusing = {{"http://c1", ProblemCode::unavailable}};
  Turns alone({"http://c1"});
  CHECK(services.send(alone)->status == 503);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1"});
}

TEST_CASE("the service after the one that redirects to where nobody answers is asked") {
  Services services{.redirects = {{"http://c1", "http://gone"}}, .leading = {"http://c2"}};
  Turns turns({"http://c1", "http://c2"});
  CHECK(services.send(turns)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c1/v1", "http://gone/v1", "http://c2/v1"});
  // The one that was redirected to ends after it has answered.
  services = {.redirects = {{"http://c1", "http://c9"}}, .leading = {"http://c9"}};
  Turns later({"http://c1", "http://c2"});
  CHECK(services.send(later)->status == 200);
  services.leading = {"http://c2"};
  CHECK(services.send(later)->status == 200);
  CHECK(services.asked == std::vector<std::string>{"http://c9/v1", "http://c1/v1", "http://c2/v1"});
}
