// The head of a .npy file: what is accepted can be written out, and is the same then.
#include "server/cli/files/npy.hpp"

#include "tests/fuzz/input.hpp"

using namespace chorus;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::span const file(reinterpret_cast<std::byte const*>(data), size);
  auto const head = cli::parse_npy(file);
  if (!head) {
    CHORUS_ASSERT(!head.error().detail.empty(), "what is refused has a reason");
    return 0;
  }
  CHORUS_ASSERT(cli::begins_like_npy(file) && head->bytes <= size, "the elements begin within the file");
  auto const text = cli::npy_head(head->dtype, head->shape);
  CHORUS_ASSERT(text.has_value(), "what was read can be written");
  auto const again = cli::parse_npy(std::as_bytes(std::span(*text)));
  CHORUS_ASSERT(again && again->dtype == head->dtype && again->shape == head->shape, "and is the same");
  return 0;
}
