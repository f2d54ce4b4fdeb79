#include "http/api/cluster/tokens.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(TokenLine, (), (id, role, sha256, expires))

constexpr auto required(TokenLine const*) { return std::array<std::string_view, 3>{"id", "role", "sha256"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::TokenLine)
