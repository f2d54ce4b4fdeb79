// GET /: members, groups and the last collectives as one plain page that needs no script.
#pragma once

#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"

namespace chorus::coordinator {

struct Overview {
  std::string version;
  bool is_unprotected = false;   // on purpose: whoever reaches the coordinator may do everything
  bool shows_everything = true;  // to this caller; otherwise nothing but the version
  std::vector<api::Worker> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;  // newest first
};

[[nodiscard]] std::string status_page(Overview const& overview);

// "&", "<", ">" and quotes as entities: names and error texts come from outside.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace chorus::coordinator
