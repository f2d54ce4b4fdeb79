// The header fields of tensors: Tensor-Shape, Content-Digest, Want-Repr-Digest and the lists of entity tags.
#include "tests/fuzz/input.hpp"
#include "worker/service/tensors/digest.hpp"
#include "worker/service/tensors/entity_tag.hpp"
#include "worker/tensors/store.hpp"

using namespace chorus;

namespace {

void check_shape(std::string_view text) {
  auto const shape = tensors::parse_shape(text);
  if (shape.has_error()) {
    CHORUS_ASSERT(!shape.error().detail.empty(), "what is refused has a reason");
    return;
  }
  auto const again = tensors::parse_shape(tensors::to_string(*shape));
  CHORUS_ASSERT(again.has_value() && *again == *shape, "a shape is written and read back");
  auto const elements = tensors::element_count(*shape, Dtype::f64);
  if (elements.has_value())
    CHORUS_ASSERT(*elements <= (std::uint64_t{1} << 63) / element_bytes(Dtype::f64), "its bytes can be counted");
}

void check_digest(std::string_view text) {
  auto const digest = service::parse_digest_field(text);
  if (!digest) {
    CHORUS_ASSERT(!digest.error().detail.empty(), "what is refused has a reason");
  } else if (*digest) {
    auto const again = service::parse_digest_field(service::to_field(**digest));
    CHORUS_ASSERT(again && *again == *digest, "a digest is written and read back");
  }
  static_cast<void>(service::parse_wanted_digest(text));
}

void check_tags(std::string_view text) {
  http::Fields fields;
  fields.add("If-Match", std::string(text));
  auto const list = service::find_tags(fields, "If-Match");
  if (!list) {
    CHORUS_ASSERT(!list.error().detail.empty(), "what is refused has a reason");
    return;
  }
  CHORUS_ASSERT(*list && ((*list)->any || !(*list)->tags.empty()), "a list that is accepted says something");
  for (auto const& tag : (*list)->tags) {
    CHORUS_ASSERT(tag.ends_with('"') && (*list)->matches_strongly(tag), "a tag has quotes and matches itself");
    CHORUS_ASSERT((*list)->matches_weakly(tag), "also weakly");
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::Input(data, size).text();
  check_shape(text);
  check_digest(text);
  check_tags(text);
  return 0;
}
