// Only authorised callers are served: every route of both services, called with every kind of credentials, over TLS.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/support/fleets/secure_fleet.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

struct Route {
  std::string method, path, role;
};

std::vector<Route> routes_of(SecureFleet& fleet, Service const& service) {
  std::vector<Route> routes;
  auto const answer = json::parse(fleet.get(service, "/v1"));
  for (auto const& one : answer.at("routes").as_array())
    routes.push_back({std::string(one.at("method").as_string()), std::string(one.at("path").as_string()),
                      std::string(one.at("role").as_string())});
  return routes;
}

// The path with its {names} replaced, depending on the segment before each.
std::string filled(std::string const& pattern, std::map<std::string, std::string> const& names) {
  std::string path, before;
  for (std::size_t at = 1; at <= pattern.size();) {
    auto const end = std::min(pattern.find('/', at), pattern.size());
    auto segment = pattern.substr(at, end - at);
    if (segment.starts_with('{')) {
      auto const found = names.find(before);
      segment = found == names.end() ? "none" : found->second;
    }
    path += "/" + segment;
    before = segment;
    at = end + 1;
  }
  return path;
}

// A name for every object that a call could damage, and bodies with which a call would succeed.
std::map<std::string, std::string> const existing{{"workers", "w1"},
                                                  {"groups", "g"},
                                                  {"tensors", "t"},
                                                  {"parameters", "p"},
                                                  {"collectives", "c"},
                                                  {"g", "all_reduce"},
                                                  {"runs", "0000000000000001"},
                                                  {"shards", "0"}};

std::string harm(std::string const& path) {
  if (path == "/v1/groups/g") return R"({"size":1})";
  if (path == "/v1/groups/g/all_reduce") return R"({"tensor":"t"})";
  if (path == "/v1/collectives" || path == "/v1/collectives/c")
    return R"({"group":"g","op":"all_reduce","tensor":"t"})";
  if (path == "/v1/tensors/t") return std::string(8, '\7');
  if (path == "/v1/demo") return R"({"group":"g"})";
  if (path == "/v1/checkpoints") return R"({"name":"x"})";
  if (path == "/v1/workers") return R"({"id":"w9","incarnation":"0000000000000001","url":"http://127.0.0.1:9"})";
  return "{}";
}

httplib::Headers const tensor_of_two{
    {"Content-Type", "application/octet-stream"}, {"Tensor-Dtype", "f32"}, {"Tensor-Shape", "2"}};

// The lease of a worker needs its incarnation, which every reader can see.
std::string with_incarnation(SecureFleet& fleet, std::string const& path) {
  if (!path.ends_with("/lease")) return path;
  auto const worker = json::parse(fleet.get(fleet.coordinator(), path.substr(0, path.rfind('/'))));
  return path + "?incarnation=" + std::string(worker.at("incarnation").as_string());
}

// Checks that the refused calls would have done harm: makes all of them as an administrator, in an order in which each
// still finds its object.
void all_of_it_would_have_worked(SecureFleet& fleet) {
  auto const admin = fleet.badge("admin");
  auto const works = [&](Service const& service, std::string const& method, std::string const& path) {
    INFO(method << " " << path);
    Outcome outcome;
    CHECK(eventually([&] {
      outcome = call(service.url, method, with_incarnation(fleet, path), admin, harm(path),
                     path == "/v1/tensors/t" ? tensor_of_two : httplib::Headers{});
      // The client has no status for an answer without a body, 204.
      return outcome.status / 100 == 2 || outcome.status == 0;
    }));
    INFO(outcome.body);
  };
  for (auto const* method : {"PUT", "DELETE"}) works(fleet.worker(0), method, "/v1/tensors/t");
  works(fleet.worker(0), "PUT", "/v1/tensors/t");
  works(fleet.coordinator(), "POST", "/v1/collectives");
  for (auto const* method : {"PUT", "DELETE"}) works(fleet.coordinator(), method, "/v1/collectives/c");
  works(fleet.coordinator(), "POST", "/v1/demo");
  works(fleet.coordinator(), "POST", "/v1/workers/w1/handover");
  works(fleet.coordinator(), "DELETE", "/v1/parameters/p");
  for (auto const* method : {"PUT", "DELETE"}) works(fleet.coordinator(), method, "/v1/groups/g");
  works(fleet.coordinator(), "DELETE", "/v1/workers/w1");
}

void make_something_to_spoil(SecureFleet& fleet) {
  std::string const ones("\0\0\x80\x3f\0\0\x80\x3f", 8);
  for (std::size_t i = 0; i < fleet.size(); ++i) fleet.put(fleet.worker(i), "/v1/tensors/t", ones, tensor_of_two);
  fleet.put(fleet.coordinator(), "/v1/groups/g", R"({"workers":["w0","w1"]})");
  fleet.put(fleet.coordinator(), "/v1/parameters/p", R"({"group":"g","dtype":"f32","shape":[4]})");
}

// Returns everything that a call could change, without values that change with time.
std::string state_of(SecureFleet& fleet) {
  auto workers = json::parse(fleet.get(fleet.coordinator(), "/v1/workers"));
  for (auto& worker : workers.at("items").as_array()) worker.as_object().erase("heard_ms_ago");
  auto state = json::serialize(workers);
  for (auto const* list : {"/v1/groups", "/v1/collectives", "/v1/parameters"})
    state += fleet.get(fleet.coordinator(), list);
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    for (auto const* list : {"/v1/tensors", "/v1/groups", "/v1/parameters"}) state += fleet.get(fleet.worker(i), list);
    state += json::serialize(json::parse(fleet.get(fleet.worker(i), "/v1/flight")).at("items"));
  }
  return state;
}

int rank_of(std::string const& role) {
  std::vector<std::string> const ladder{"open", "read", "submit", "join", "admin"};
  return static_cast<int>(std::find(ladder.begin(), ladder.end(), role) - ladder.begin());
}

bool contains(std::string const& text, std::string const& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every route refuses callers without the right role, and a refused call changes nothing") {
  SecureFleet fleet(2);
  make_something_to_spoil(fleet);
  auto const expired = fleet.badge("admin", "1s");
  auto const revoked = fleet.badge("admin");
  fleet.revoke(revoked);
  REQUIRE(eventually([&] { return call(fleet.coordinator().url, "GET", "/v1", expired).status == 401; }));
  Authority stranger;
  auto wrong_certificate = fleet.badge("admin");
  wrong_certificate.certificate = stranger.issue("client", {"127.0.0.1"});
  auto no_certificate = wrong_certificate;
  no_certificate.certificate = {};
  auto late_certificate = wrong_certificate;
  late_certificate.certificate = fleet.authority.issue("late", {"127.0.0.1"}, -std::chrono::hours(1));
  auto unknown = fleet.badge("admin"), none = unknown;
  unknown.token.back() = unknown.token.back() == '0' ? '1' : '0';
  none.token.clear();
  std::map<std::string, Badge> roles;
  for (auto const* role : {"read", "submit", "join", "admin"}) roles[role] = fleet.badge(role);
  auto const before = state_of(fleet);

  std::size_t asked = 0, refused = 0;
  for (auto const* service : {&fleet.coordinator(), &fleet.worker(0)}) {
    auto const routes = routes_of(fleet, *service);
    CHECK(routes.size() > 20);
    for (auto const& route : routes) {
      auto const path = filled(route.path, existing);
      CAPTURE(service->id);
      CAPTURE(route.method);
      CAPTURE(path);
      auto const ask = [&](Badge const& badge) {
        ++asked;
        auto outcome =
            call(service->url, route.method, with_incarnation(fleet, path), badge,
                 route.method == "GET" ? "" : harm(path), path == "/v1/tensors/t" ? tensor_of_two : httplib::Headers{});
        refused += outcome.is_refused() ? 1 : 0;
        return outcome;
      };
      for (auto const& badge : {wrong_certificate, no_certificate, late_certificate}) CHECK(ask(badge).status == 0);
      bool const is_open = route.role == "open";
      CHECK(ask(none).is_refused() == !is_open);
      for (auto const& badge : {unknown, expired, revoked}) CHECK(ask(badge).status == 401);
      for (auto const& [role, badge] : roles) {
        CAPTURE(role);
        if (rank_of(role) >= rank_of(route.role)) continue;
        auto const outcome = ask(badge);
        CHECK(outcome.status == 403);
        CHECK(contains(outcome.challenge, "scope=\"" + route.role + "\""));
      }
    }
  }
  MESSAGE(asked << " calls, " << refused << " refused");
  CHECK(state_of(fleet) == before);
  CHECK(std::ranges::count(routes_of(fleet, fleet.coordinator()), "admin", &Route::role) > 0);

  // Authorised callers are not refused; the objects that they ask for do not exist.
  for (auto const* service : {&fleet.coordinator(), &fleet.worker(0)})
    for (auto const& route : routes_of(fleet, *service))
      for (auto const& [role, badge] : roles) {
        if (rank_of(role) < rank_of(route.role)) continue;
        CAPTURE(role);
        CAPTURE(route.method);
        CAPTURE(route.path);
        auto const outcome =
            call(service->url, route.method, filled(route.path, {}), badge, route.method == "GET" ? "" : "{}");
        INFO(outcome.body);
        CHECK_FALSE(outcome.is_refused());
      }
  all_of_it_would_have_worked(fleet);
}

TEST_CASE("a fleet with tokens and certificates works, and its links use TLS") {
  SecureFleet fleet(3);
  auto const user = fleet.badge("submit");
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    std::vector<float> const values(300'000, static_cast<float>(i + 1));
    fleet.put(fleet.worker(i), "/v1/tensors/t", {reinterpret_cast<char const*>(values.data()), values.size() * 4},
              {{"Content-Type", "application/octet-stream"}, {"Tensor-Dtype", "f32"}, {"Tensor-Shape", "300000"}});
  }
  REQUIRE(fleet.chorus(user, {"groups", "create", "g", "--size", "3"}).status == 0);
  for (auto const* algorithm : {"ring", "tree", "mesh", "centralized"}) {
    CAPTURE(algorithm);
    auto const ran = fleet.chorus(
        user, {"run", "all_reduce", "--group", "g", "--tensor", "t", "--output", "sum", "--algorithm", algorithm});
    INFO(ran.output);
    CHECK(ran.status == 0);
    for (std::size_t i = 0; i < fleet.size(); ++i) {
      auto const bytes = fleet.get(fleet.worker(i), "/v1/tensors/sum");
      std::vector<float> values(bytes.size() / 4);
      std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(values.data()));
      CHECK(values == std::vector<float>(300'000, 6.0F));
    }
  }
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    auto const links = fleet.get(fleet.worker(i), "/v1/links");
    CHECK(contains(links, R"("link":"tls")"));
    CHECK(links.find("tcp") == std::string::npos);
    auto const metrics = fleet.get(fleet.worker(i), "/metrics");
    CHECK(contains(metrics, "chorus_auth_enabled 1"));
    CHECK(contains(metrics, "chorus_tls_certificate_expiry_timestamp_seconds "));
  }
  // One worker asks the others on behalf of a client.
  fleet.put(fleet.coordinator(), "/v1/parameters/p",
            R"({"group":"g","dtype":"f32","shape":[6],"optimizer":{"name":"none"}})");
  std::string const value(24, '\0');
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    auto const pulled = call(fleet.worker(i).url, "GET", "/v1/parameters/p/value", user);
    INFO(pulled.body);
    CHECK(pulled.status == 200);
    CHECK(pulled.body.size() == value.size());
  }
}

TEST_CASE("the audit has every change with the token's name, and no token is written anywhere") {
  SecureFleet fleet(1);
  auto const user = fleet.badge("submit"), reader = fleet.badge("read");
  CHECK(call(fleet.coordinator().url, "PUT", "/v1/groups/g?secret=1", user, R"({"size":1})").status == 400);
  CHECK(call(fleet.coordinator().url, "PUT", "/v1/groups/g", user, R"({"size":1})").status == 201);
  CHECK(call(fleet.coordinator().url, "DELETE", "/v1/groups/g", reader).status == 403);
  auto const audit = content_of(fleet.file("audit.jsonl"));
  CHECK(contains(audit, R"("token":"submit-1")"));
  CHECK(contains(audit, R"("method":"PUT","path":"/v1/groups/g","status":400,"code":"bad_request"})"));
  CHECK(contains(audit, R"("method":"PUT","path":"/v1/groups/g","status":201})"));
  CHECK(contains(audit, R"("token":"read-2")"));
  CHECK(contains(audit, R"("path":"/v1/groups/g","status":403,"code":"forbidden"})"));
  CHECK(contains(audit, R"("method":"POST","path":"/v1/workers","status":201})"));
  CHECK(audit.find("lease") == std::string::npos);
  CHECK(audit.find("secret") == std::string::npos);
  for (auto const& token : {user.token, reader.token}) {
    CHECK(audit.find(token) == std::string::npos);
    CHECK(content_of(fleet.file("tokens.jsonl")).find(token.substr(8)) == std::string::npos);
  }
}

TEST_CASE("a worker cannot use a name outside its certificate, act for another worker, or probe unknown addresses") {
  SecureFleet fleet(1);
  auto service = fleet.badge("join");
  service.certificate = fleet.authority.issue("w7", {"w7.example"});
  auto const joined = call(fleet.coordinator().url, "POST", "/v1/workers", service,
                           R"({"id":"w7","incarnation":"0000000000000001","url":"https://127.0.0.1:9"})");
  CHECK(joined.status == 403);
  CHECK(contains(joined.body, "the certificate is for w7.example, and the worker advertises 127.0.0.1"));

  // A worker cannot act for another worker either.
  auto const own_lease = with_incarnation(fleet, "/v1/workers/w0/lease");
  auto const incarnation = own_lease.substr(own_lease.rfind('=') + 1);
  auto const of_w0 = [&](std::string const& method, std::string const& path) {
    return call(fleet.coordinator().url, method, path, service, R"({"incarnation":")" + incarnation + "\"}").status;
  };
  CHECK(of_w0("PUT", "/v1/workers/w0/lease") == 403);
  CHECK(of_w0("DELETE", own_lease) == 403);
  CHECK(of_w0("POST", "/v1/workers/w0/handover") == 403);
  CHECK(contains(fleet.get(fleet.coordinator(), "/v1/workers/w0"), R"("state":"ready")"));

  auto const probe = [&](std::string const& body) {
    return call(fleet.worker(0).url, "POST", "/v1/probes", service, body).status;
  };
  CHECK(probe(R"({"worker":"w0","url":")" + fleet.coordinator().url + "\"}") == 403);
  CHECK(probe(R"({"worker":"w9","url":")" + fleet.worker(0).url + "\"}") == 403);
  CHECK(probe(R"({"worker":"w0","url":")" + fleet.worker(0).url + "\"}") == 200);

  auto const own = fleet.authority.issue("other", {"other.example"});
  auto const refused =
      run({binary("chorus-worker"), "--port", "0", "--tls-cert", own.certificate, "--tls-key", own.key});
  CHECK(refused.status == 1);
  CHECK(contains(refused.output, "is for other.example, and others are told to call 127.0.0.1"));
}

TEST_CASE("an address that other hosts reach is refused without authentication, unless a flag allows it") {
  for (auto const* service : {"chorus-coordinator", "chorus-worker"}) {
    CAPTURE(service);
    auto const refused = run({binary(service), "--host", "0.0.0.0", "--port", "0"});
    CHECK(refused.status == 1);
    CHECK(contains(refused.output, "--auth-tokens FILE, or --insecure-no-auth"));
    Service const open(
        service, {binary(service), "--host", "0.0.0.0", "--port", "0", "--log-level", "error", "--insecure-no-auth"});
    auto const url = "http://127.0.0.1:" + std::to_string(open.port());
    CHECK(contains(call(url, "GET", "/metrics", {}).body, "chorus_auth_enabled 0"));
    if (open.id == "chorus-coordinator")
      CHECK(contains(call(url, "GET", "/", {}).body, "whoever reaches this address may do everything"));
    CHECK(call(url, "GET", "/metrics", {}, "", {{"Host", "evil.example"}}).status == 421);
    CHECK(call(url, "PUT", "/v1/groups/g", {}, "{}", {{"Origin", "https://evil.example"}}).status == 403);
  }
}

TEST_CASE("the status page shows no data without a token") {
  SecureFleet fleet(1);
  auto stranger = fleet.badge("read");
  CHECK(contains(call(fleet.coordinator().url, "GET", "/", stranger).body, "w0"));
  stranger.token.clear();
  auto const page = call(fleet.coordinator().url, "GET", "/", stranger).body;
  CHECK(page.find("w0") == std::string::npos);
  for (auto const* probe : {"/healthz", "/livez", "/readyz"})
    CHECK(call(fleet.coordinator().url, "GET", probe, stranger).body.size() < 16);
}

TEST_CASE("the command line says what is wrong with a token or a certificate") {
  SecureFleet fleet(1);
  auto user = fleet.badge("read");
  REQUIRE(fleet.chorus(user, {"status"}).status == 0);
  auto const own = user.certificate;
  auto const other = fleet.authority.issue("other", {"127.0.0.1"});
  user.certificate.key = other.key;
  auto const mixed = fleet.chorus(user, {"status"});
  CHECK(mixed.status == 1);
  CHECK(
      contains(mixed.output, "error: the key " + other.key + " cannot be read, or is not that of " + own.certificate));
  user.certificate = {fleet.file("absent.pem"), own.key};
  CHECK(contains(fleet.chorus(user, {"status"}).output,
                 "error: the certificate " + fleet.file("absent.pem") + " cannot be read: No such file or directory"));
  user.certificate = {};
  for (auto const& command : {std::vector<std::string>{"status"}, {"groups", "create", "g", "--size", "1"}}) {
    auto const unknown = fleet.chorus(user, command);
    CHECK(unknown.status == 3);
    CHECK(contains(unknown.output, "is a client's certificate (--tls-cert, --tls-key) asked for?"));
    CHECK(unknown.output.find("silent") == std::string::npos);
  }
  user.certificate = own;
  auto const refused = fleet.chorus(user, {"groups", "create", "g", "--size", "1"});
  CHECK(refused.status == 1);
  CHECK(contains(refused.output, "this needs the role submit, and the token"));
  Authority stranger;
  user.authorities = stranger.path();
  auto const unbelieved = fleet.chorus(user, {"status"});
  CHECK(unbelieved.status == 3);
  CHECK(contains(unbelieved.output, "--tls-ca has to have the authority that signed it"));
}

TEST_CASE("the command line shows its token and certificate where a standby redirects it to, but never in clear") {
  SecureFleet fleet(1);
  auto const user = fleet.badge("read");
  auto const own = fleet.authority.issue("standby", {"127.0.0.1"});
  httplib::SSLServer standby(own.certificate.c_str(), own.key.c_str(), fleet.authority.path().c_str());
  httplib::Server snoop;
  std::atomic<int> snooped = 0;
  snoop.set_pre_routing_handler([&](auto const&, auto&) {
    ++snooped;
    return httplib::Server::HandlerResponse::Handled;
  });
  auto leader = fleet.coordinator().url;
  standby.Get(".*", [&](auto const& request, auto& response) { response.set_redirect(leader + request.target, 307); });
  auto const url = "https://127.0.0.1:" + std::to_string(standby.bind_to_any_port("127.0.0.1"));
  auto const clear = "http://127.0.0.1:" + std::to_string(snoop.bind_to_any_port("127.0.0.1"));
  std::thread serving([&] { standby.listen_after_bind(); }), snooping([&] { snoop.listen_after_bind(); });
  auto const good = fleet.chorus(user, {"status"}, url);
  leader = clear;
  auto const bad = fleet.chorus(user, {"status"}, url);
  standby.stop();
  snoop.stop();
  serving.join();
  snooping.join();
  CHECK_MESSAGE(good.status == 0, good.output);
  CHECK(bad.status == 3);
  CHECK(contains(bad.output, url + ": it redirects to " + clear + ", which is not encrypted"));
  CHECK(snooped == 0);
}
