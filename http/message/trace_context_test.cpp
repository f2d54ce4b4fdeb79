#include "http/message/trace_context.hpp"

#include <doctest/doctest.h>

using namespace chorus::http;

namespace {

constexpr auto trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";

}  // namespace

TEST_CASE("traceparent is read, and passed on with a new span") {
  auto const trace = parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  REQUIRE(trace.has_value());
  CHECK(*trace == TraceContext{trace_id, "00f067aa0ba902b7", 1});
  CHECK(to_traceparent(*trace) == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  CHECK(to_traceparent(child_of(*trace, 0xab)) == "00-4bf92f3577b34da6a3ce929d0e0e4736-00000000000000ab-01");
}

TEST_CASE("of a later version the known parts are read") {
  CHECK(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-else")->trace_id == trace_id);
  CHECK(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")->trace_id == trace_id);
  CHECK_FALSE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.").has_value());
}

TEST_CASE("an invalid traceparent is ignored as a whole") {
  for (auto const* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01"})
    CHECK_MESSAGE(!parse_traceparent(text).has_value(), text);
  Fields twice;
  twice.add("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  CHECK(trace_of(twice).has_value());
  twice.add("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  CHECK_FALSE(trace_of(twice).has_value());
}
