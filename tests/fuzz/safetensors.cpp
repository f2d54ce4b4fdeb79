// The header of a safetensors file: what is accepted covers the file's bytes once, and is written and read back.
#include "worker/parameters/checkpoints/safetensors_parse.hpp"

#include "tests/fuzz/input.hpp"
#include "worker/parameters/checkpoints/errc.hpp"

using namespace chorus;
using namespace chorus::checkpoints;

namespace {

void check_file(std::span<std::byte const> file, std::uint64_t file_bytes) {
  auto const header_bytes = safetensors_header_bytes(file.first(std::min(file.size(), safetensors_prefix)), file_bytes);
  if (header_bytes.has_error() || *header_bytes > file.size() - safetensors_prefix) return;
  auto const text = file.subspan(safetensors_prefix, static_cast<std::size_t>(*header_bytes));
  auto const header = parse_safetensors({reinterpret_cast<char const*>(text.data()), text.size()}, file_bytes);
  if (header.has_error()) {
    CHORUS_ASSERT(!header.error().detail.empty(), "what is refused has a reason");
    return;
  }
  std::uint64_t covered = 0;
  for (auto const& tensor : header->tensors) {
    CHORUS_ASSERT(tensor.begin == covered && tensor.end >= tensor.begin, "tensors follow one another");
    CHORUS_ASSERT(header->find(tensor.name) != nullptr, "a tensor is found by its name");
    covered = tensor.end;
  }
  CHORUS_ASSERT(header->data_begin + covered == file_bytes, "the tensors are the file");

  auto tensors = header->tensors;
  auto const made = make_safetensors_header(tensors, header->metadata);
  if (made.has_error()) {
    CHORUS_ASSERT(made.error().code == SafetensorsErrc::bad_name, "only names are written more strictly than read");
    return;
  }
  CHORUS_ASSERT(tensors == header->tensors, "every tensor is placed where it was");
  auto const again = parse_safetensors(std::string_view(*made).substr(safetensors_prefix), made->size() + covered);
  CHORUS_ASSERT(again.has_value() && again->tensors == tensors && again->metadata == header->metadata,
                "a header is written and read back");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const more_bytes = input.number<std::uint64_t>() >> (input.byte() % 64);  // of the file, after those given
  auto const file = input.bytes();
  if (more_bytes > UINT64_MAX - file.size()) return 0;
  check_file(file, file.size() + more_bytes);
  // The same with a prefix that fits, which mutation does not find by itself.
  std::uint64_t const length = file.size();
  std::vector<std::byte> framed(safetensors_prefix + file.size());
  std::memcpy(framed.data(), &length, sizeof length);
  std::copy(file.begin(), file.end(), framed.begin() + safetensors_prefix);
  if (more_bytes <= UINT64_MAX - framed.size()) check_file(framed, framed.size() + more_bytes);
  return 0;
}
