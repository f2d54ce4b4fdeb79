// A coordinator and workers with tokens and certificates, as real processes, and callers with any credentials.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/certificates.hpp"
#include "tests/support/fleets/cluster.hpp"

namespace chorus::testing {

// Credentials of a caller.
struct Badge {
  std::string token;        // "": none
  Identity certificate;     // empty: none
  std::string authorities;  // file of the authorities that the caller trusts
};

struct Outcome {
  int status = 0;         // 0: no answer
  std::string challenge;  // WWW-Authenticate
  std::string body;
  // True if the request was refused before any handler saw it.
  [[nodiscard]] bool is_refused() const { return status == 0 || status == 401 || !challenge.empty(); }
};

// Returns without waiting for the end of a streamed body.
Outcome call(std::string const& url, std::string const& method, std::string const& path, Badge const& badge,
             std::string const& body = "", httplib::Headers headers = {});

// Output of a program, including standard error, and its exit status.
struct Ran {
  int status = 0;
  std::string output;
};
Ran run(std::vector<std::string> const& arguments);

enum class Logs {
  shown,  // warnings, on the output of the test
  kept,   // everything, in file("NAME.log")
};

class SecureFleet {
 public:
  // Client certificates are required everywhere; links go over TLS.
  explicit SecureFleet(std::size_t workers, Logs logs = Logs::shown);

  Service& coordinator() { return *coordinator_; }
  Service& worker(std::size_t i) { return *workers_.at(i); }
  [[nodiscard]] std::size_t size() const { return workers_.size(); }

  // Makes a token of the role with `chorus token create`, and adds the fleet's certificate; `lifetime` as for
  // --expires. Returns when every service has read the token. revoke() returns when every service has dropped it.
  Badge badge(std::string const& role, std::string const& lifetime = "1h");
  void revoke(Badge const& badge);

  // Uses the token of an administrator. The test fails unless the status is 2xx.
  std::string get(Service const& service, std::string const& path);
  std::string put(Service const& service, std::string const& path, std::string const& body,
                  httplib::Headers headers = {});

  // Runs `chorus` with this badge; `coordinator`: URL of another one than the fleet's.
  Ran chorus(Badge const& badge, std::vector<std::string> const& arguments,
             std::optional<std::string> const& coordinator = {});

  [[nodiscard]] std::string file(std::string const& name) const { return directory_ / name; }
  Authority authority;

 private:
  std::string create(std::string const& id, std::string const& role, std::string const& lifetime);
  void wait_for(std::function<bool(std::string const& url)> const& holds) const;  // at every service
  std::vector<std::string> protection(std::string const& name);
  std::unique_ptr<Service> start(std::string const& name, std::vector<std::string> arguments);

  Logs const logs_;
  ScratchDirectory directory_;
  std::map<std::string, std::string> ids_;  // by token
  int drawn_ = 0;
  Identity client_;
  std::string service_token_file_;
  Badge admin_;
  std::unique_ptr<Service> coordinator_;
  std::vector<std::unique_ptr<Service>> workers_;
};

}  // namespace chorus::testing
