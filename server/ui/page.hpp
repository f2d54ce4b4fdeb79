// GET /: the status page. Its first block, the verdict, is written here, so that it can be read without scripts; the
// scripts of server/ui/page draw the rest from the public JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/status.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::ui {

[[nodiscard]] std::string page(api::Verdict const& verdict, std::string_view version,
                               std::vector<api::Worker> const& workers,
                               std::vector<std::shared_ptr<api::Group const>> const& groups);

// "&", "<", ">" and quotes as entities: names and error texts come from outside.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace chorus::ui
