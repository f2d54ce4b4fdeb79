#include "http/api/cluster/membership.hpp"

#include <charconv>

#include "http/api/described.hpp"

namespace chorus::api {
namespace {

constexpr std::size_t hex_digits = 16;

}  // namespace

std::string to_hex(std::uint64_t value) {
  std::string text(hex_digits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) *digit = "0123456789abcdef"[value & 15];
  return text;
}

std::optional<std::uint64_t> from_hex(std::string_view text) {
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != hex_digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

BOOST_DESCRIBE_STRUCT(Worker, (),
                      (id, incarnation, url, locality, version, state, lease_ms, heard_ms_ago, groups, gpus, takeovers,
                       rivals))
BOOST_DESCRIBE_STRUCT(Accused, (), (worker, incarnation))
BOOST_DESCRIBE_STRUCT(Trouble, (), (group, epoch, accused))
BOOST_DESCRIBE_STRUCT(GroupCalls, (), (group, epoch, calls, seconds))
BOOST_DESCRIBE_STRUCT(LeaseRequest, (), (incarnation, troubles, calls, lease_ms))
BOOST_DESCRIBE_STRUCT(Reachability, (), (worker, url, reachable, seconds, detail))
BOOST_DESCRIBE_STRUCT(LeaseAnswer, (), (lease_ms))
BOOST_DESCRIBE_STRUCT(WorkerList, (), (items, next_cursor))

constexpr auto required(Worker const*) { return std::array<std::string_view, 2>{"id", "incarnation"}; }
constexpr auto required(Accused const*) { return std::array<std::string_view, 2>{"worker", "incarnation"}; }
constexpr auto required(Trouble const*) { return std::array<std::string_view, 2>{"group", "epoch"}; }
constexpr auto required(GroupCalls const*) {
  return std::array<std::string_view, 4>{"group", "epoch", "calls", "seconds"};
}
constexpr auto required(LeaseRequest const*) { return std::array<std::string_view, 1>{"incarnation"}; }
constexpr auto required(Reachability const*) { return std::array<std::string_view, 2>{"worker", "reachable"}; }
constexpr auto required(LeaseAnswer const*) { return std::array<std::string_view, 1>{"lease_ms"}; }
constexpr auto required(WorkerList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::JoinRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Worker)
CHORUS_HTTP_MESSAGE(chorus::api::LeaseRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Reachability)
CHORUS_HTTP_MESSAGE(chorus::api::LeaseAnswer)
CHORUS_HTTP_MESSAGE(chorus::api::WorkerList)
