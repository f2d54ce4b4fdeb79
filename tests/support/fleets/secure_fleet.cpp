#include "tests/support/fleets/secure_fleet.hpp"

#include <stdexcept>

namespace chorus::testing {

Outcome call(std::string const& url, std::string const& method, std::string const& path, Badge const& badge,
             std::string const& body, httplib::Headers headers) {
  httplib::Client client(url, badge.certificate.certificate, badge.certificate.key);
  if (!badge.authorities.empty()) client.set_ca_cert_path(badge.authorities.c_str());
  client.set_read_timeout(30);
  client.set_tcp_nodelay(true);
  client.set_url_encode(false);
  Outcome outcome;
  httplib::Request request;
  request.method = method;
  request.path = path;
  request.headers = std::move(headers);
  if (!badge.token.empty()) request.headers.emplace("Authorization", "Bearer " + badge.token);
  request.body = body;
  if (body.starts_with('{')) request.headers.emplace("Content-Type", "application/json");
  bool is_stream = false;
  request.response_handler = [&](httplib::Response const& head) {
    outcome.status = head.status;
    outcome.challenge = head.get_header_value("WWW-Authenticate");
    is_stream = head.get_header_value("Content-Type") == "text/event-stream";
    return !is_stream;
  };
  request.content_receiver = [&](char const* data, std::size_t bytes, std::uint64_t, std::uint64_t) {
    outcome.body.append(data, bytes);
    return true;
  };
  auto const result = client.send(request);
  if (!result && !is_stream) outcome.status = 0;
  return outcome;
}

Ran run(std::vector<std::string> const& arguments) {
  std::vector<std::string> all{"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Process process(all);
  auto output = process.read_all();
  return {process.wait(), std::move(output)};
}

std::unique_ptr<Service> SecureFleet::start(std::string const& name, std::vector<std::string> arguments) {
  for (auto const& one : protection(name)) arguments.push_back(one);
  arguments.insert(arguments.end(), {"--log-level", logs_ == Logs::kept ? "trace" : "warn"});
  if (logs_ == Logs::kept) {
    std::vector<std::string> const redirected{"/bin/sh", "-c", "log=$1; shift; exec \"$@\" 2>\"$log\"", "sh",
                                              file(name + ".log")};
    arguments.insert(arguments.begin(), redirected.begin(), redirected.end());
  }
  return std::make_unique<Service>(name, std::move(arguments));
}

SecureFleet::SecureFleet(std::size_t workers, Logs logs) : logs_(logs) {
  client_ = authority.issue("client", {"client.example"});
  auto const service = create("service", "join", "1h");
  service_token_file_ = directory_ / "service.token";
  write_file(service_token_file_, service + "\n");
  admin_ = badge("admin");

  coordinator_ = start("coordinator", {binary("chorus-coordinator"), "--port", "0", "--audit-log", file("audit.jsonl"),
                                       "--journal", file("journal")});
  for (std::size_t i = 0; i < workers; ++i) {
    auto const id = "w" + std::to_string(i);
    workers_.push_back(start(
        id, {binary("chorus-worker"), "--port", "0", "--id", id, "--shm", "off", "--coordinator", coordinator_->url}));
    if (!eventually([&] { return call(workers_.back()->url, "GET", "/readyz", admin_).status == 200; }))
      throw std::runtime_error(id +
                               " did not become ready: " + call(workers_.back()->url, "GET", "/readyz", admin_).body);
  }
}

std::vector<std::string> SecureFleet::protection(std::string const& name) {
  auto const own = authority.issue(name, {"127.0.0.1"});
  return {"--auth-tokens",
          directory_ / "tokens.jsonl",
          "--token-file",
          service_token_file_,
          "--tls-cert",
          own.certificate,
          "--tls-key",
          own.key,
          "--tls-ca",
          authority.path(),
          "--tls-require-client-cert"};
}

std::string SecureFleet::create(std::string const& id, std::string const& role, std::string const& lifetime) {
  Process process({binary("chorus"), "token", "create", "--file", directory_ / "tokens.jsonl", "--role", role, "--id",
                   id, "--expires", lifetime});
  auto token = process.read_line();
  if (process.wait() != 0) throw std::runtime_error("no token of the role " + role);
  ids_[token] = id;
  return token;
}

Badge SecureFleet::badge(std::string const& role, std::string const& lifetime) {
  Badge const badge{create(role + "-" + std::to_string(drawn_++), role, lifetime), client_, authority.path()};
  wait_for([&](std::string const& url) {
    auto const outcome = call(url, "GET", "/v1", badge);
    return outcome.status == 200 || outcome.body.find("has expired") != std::string::npos;
  });
  return badge;
}

void SecureFleet::wait_for(std::function<bool(std::string const& url)> const& holds) const {
  std::vector<std::string> urls;
  if (coordinator_) urls.push_back(coordinator_->url);
  for (auto const& worker : workers_) urls.push_back(worker->url);
  for (auto const& url : urls)
    if (!eventually([&] { return holds(url); })) throw std::runtime_error(url + " does not know of a change of tokens");
}

void SecureFleet::revoke(Badge const& badge) {
  if (run({binary("chorus"), "token", "revoke", ids_.at(badge.token), "--file", directory_ / "tokens.jsonl"}).status !=
      0)
    throw std::runtime_error("the token is not revoked");
  wait_for([&](std::string const& url) { return call(url, "GET", "/v1", badge).status == 401; });
}

std::string SecureFleet::get(Service const& service, std::string const& path) {
  auto outcome = call(service.url, "GET", path, admin_);
  if (outcome.status != 200) throw std::runtime_error("GET " + path + ": " + outcome.body);
  return std::move(outcome.body);
}

std::string SecureFleet::put(Service const& service, std::string const& path, std::string const& body,
                             httplib::Headers headers) {
  auto outcome = call(service.url, "PUT", path, admin_, body, std::move(headers));
  if (outcome.status / 100 != 2) throw std::runtime_error("PUT " + path + ": " + outcome.body);
  return std::move(outcome.body);
}

Ran SecureFleet::chorus(Badge const& badge, std::vector<std::string> const& arguments,
                        std::optional<std::string> const& coordinator) {
  auto const file = directory_ / "cli.token";
  write_file(file, badge.token + "\n");
  std::vector<std::string> all{
      binary("chorus"), "--coordinator",  coordinator.value_or(coordinator_->url), "--token-file", file,
      "--tls-ca",       badge.authorities};
  if (!badge.certificate.certificate.empty())
    all.insert(all.end(), {"--tls-cert", badge.certificate.certificate, "--tls-key", badge.certificate.key});
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all);
}

}  // namespace chorus::testing
