// The Range field: a range that is accepted has bytes, and all of them exist.
#include "http/message/range.hpp"

#include "tests/fuzz/input.hpp"

using namespace chorus::http;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  chorus::fuzz::Input input(data, size);
  auto const length = input.number<std::uint64_t>() >> input.byte() % 64;
  auto const range = parse_range(input.text(), length);
  if (!range) {
    CHORUS_ASSERT(!range.error().detail.empty(), "what is refused has a reason");
    return 0;
  }
  CHORUS_ASSERT(range->length > 0 && range->first < length && range->length <= length - range->first,
                "the range lies within the bytes");
  auto const field = "bytes=" + std::to_string(range->first) + "-" + std::to_string(range->first + range->length - 1);
  auto const again = parse_range(field, length);
  CHORUS_ASSERT(again && *again == *range, "a range written out is the same range");
  CHORUS_ASSERT(content_range(*range, length).starts_with("bytes "), "it can be said which bytes these are");
  return 0;
}
