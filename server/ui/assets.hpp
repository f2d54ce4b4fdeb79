// GET /ui/{name}: what the status page is made of, from this binary and from nowhere else.
#pragma once

#include "http/message/message.hpp"
#include "http/routing/router.hpp"

namespace chorus::ui {

// Adds the route. Answers carry an ETag and are asked for again each time (304), so that a page never mixes releases.
// Problems: not_found.
void add_assets(http::Router& router);

// What every answer that a browser shows should say: nothing is loaded from elsewhere, no inline scripts or styles, no
// frames.
void set_security(http::Fields& fields);

}  // namespace chorus::ui
