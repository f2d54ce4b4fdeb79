// The way of one request from the service that was asked to the one that redirects lead to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/client/client.hpp"
#include "server/cli/connection/session.hpp"

namespace chorus::cli {

class Redirects {
 public:
  // `service` is a URL; failures call it `who`. The path has the query.
  Redirects(std::string who, std::string_view service, std::string const& path);

  // Whom to ask, with path and query.
  [[nodiscard]] http::Url const& target() const { return target_; }

  // Follows a redirect of the target to this URL or path. Empty: the target is the new one. Failures: `unavailable`
  // like that of a cluster without a leader, if services redirect to each other; not reachable, if the location is no
  // URL, or would send credentials in clear.
  [[nodiscard]] std::optional<Failure> follow(std::string const& location);

  // The failure of a target that does not answer, for this reason.
  [[nodiscard]] Failure unreachable(std::string const& reason) const;

 private:
  std::string const who_;
  http::Url target_;
  std::vector<std::string> passed_;  // URLs that redirected
  std::string from_;                 // the last service that redirected, or ""
};

}  // namespace chorus::cli
