#include "http/api/push_log.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(LoggedPush, (), (kind, client, incarnation, sequence, clock, dtype, rows, norm_bits, clients))
BOOST_DESCRIBE_STRUCT(LogArray, (), (name, bytes))
BOOST_DESCRIBE_STRUCT(LogBase, (), (parameter, begin, end, dtype, state, arrays))

constexpr auto required(LoggedPush const*) { return std::array<std::string_view, 2>{"kind", "dtype"}; }
constexpr auto required(LogArray const*) { return std::array<std::string_view, 2>{"name", "bytes"}; }
constexpr auto required(LogBase const*) {
  return std::array<std::string_view, 6>{"parameter", "begin", "end", "dtype", "state", "arrays"};
}

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::LoggedPush)
CHORUS_HTTP_MESSAGE(chorus::api::LogBase)
