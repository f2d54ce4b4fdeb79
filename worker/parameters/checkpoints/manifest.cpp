#include "worker/parameters/checkpoints/manifest.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "collectives/core/dtype.hpp"
#include "http/json/codec.hpp"
#include "worker/parameters/checkpoints/digests.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/layout.hpp"

namespace chorus::checkpoints {

BOOST_DESCRIBE_STRUCT(PieceRecord, (), (parameter, array, tensor, dtype, begin, end, elements_each))
BOOST_DESCRIBE_STRUCT(ShardRecord, (), (parameter, begin, end, metadata))
BOOST_DESCRIBE_STRUCT(FileRecord, (), (name, bytes, xxh3, sha256, pieces, shards))
BOOST_DESCRIBE_STRUCT(ParameterRecord, (), (name, dtype, shape, metadata))
BOOST_DESCRIBE_STRUCT(Manifest, (), (format, number, parameters, files))

constexpr auto required(PieceRecord const*) {
  return std::array<std::string_view, 7>{"parameter", "array", "tensor", "dtype", "begin", "end", "elements_each"};
}
constexpr auto required(ShardRecord const*) {
  return std::array<std::string_view, 4>{"parameter", "begin", "end", "metadata"};
}
constexpr auto required(FileRecord const*) {
  return std::array<std::string_view, 6>{"name", "bytes", "xxh3", "sha256", "pieces", "shards"};
}
constexpr auto required(ParameterRecord const*) {
  return std::array<std::string_view, 4>{"name", "dtype", "shape", "metadata"};
}
constexpr auto required(Manifest const*) {
  return std::array<std::string_view, 4>{"format", "number", "parameters", "files"};
}

namespace {

constexpr std::string_view format = "chorus-checkpoint/1";
constexpr std::size_t text_limit_bytes = std::size_t{1} << 30;
constexpr std::string_view digest_key = ",\"sha256\":\"";
constexpr std::string_view text_end = "\"}\n";
constexpr std::size_t digest_digits = 64;

Error bad(std::string detail) { return {CheckpointErrc::bad_manifest, std::move(detail)}; }

Result<std::uint64_t> element_count(ParameterRecord const& parameter) {
  std::uint64_t elements = 1;
  for (auto const dimension : parameter.shape)
    if (__builtin_mul_overflow(elements, dimension, &elements))
      return bad("the shape of " + parameter.name + " does not fit into 64 bits");
  return elements;
}

// Checks that the pieces of one array cover the parameter.
Status check_cover(std::string const& what, std::vector<PieceRecord const*> pieces, std::uint64_t elements) {
  std::sort(pieces.begin(), pieces.end(),
            [](auto const* a, auto const* b) { return std::tie(a->begin, a->end) < std::tie(b->begin, b->end); });
  auto const& first = *pieces.front();
  if (!parse_dtype(first.dtype)) return bad(what + " has the unknown dtype " + first.dtype);
  std::uint64_t covered = 0;
  for (auto const* piece : pieces) {
    if (piece->dtype != first.dtype || piece->elements_each != first.elements_each)
      return bad("the pieces of " + what + " differ in dtype or elements_each");
    if (piece->end < piece->begin || piece->end > elements)
      return bad("a piece of " + what + " has elements " + std::to_string(piece->begin) + " to " +
                 std::to_string(piece->end) + " of " + std::to_string(elements));
    if (first.elements_each == 0) continue;
    if (piece->begin % first.elements_each != 0 || piece->end % first.elements_each != 0)
      return bad("a piece of " + what + " is cut within " + std::to_string(first.elements_each) + " elements");
    if (piece->begin != covered)
      return bad(what + " has elements " + std::to_string(std::min(covered, piece->begin)) + " to " +
                 std::to_string(std::max(covered, piece->begin)) + (piece->begin < covered ? " twice" : " nowhere"));
    covered = piece->end;
  }
  if (first.elements_each != 0 && covered != elements)
    return bad(what + " has elements " + std::to_string(covered) + " to " + std::to_string(elements) + " nowhere");
  return ok();
}

}  // namespace

std::string to_text(Manifest const& manifest) {
  auto text = http::encode(manifest);
  text.pop_back();
  auto const digest = sha256_of(text);
  return text.append(digest_key).append(digest).append(text_end);
}

Result<Manifest> parse_manifest(std::string_view text) {
  auto const tail = digest_key.size() + digest_digits + text_end.size();
  if (text.size() < tail || !text.ends_with(text_end)) return bad("the manifest is not whole");
  auto const body = text.substr(0, text.size() - tail);
  if (text.substr(body.size(), digest_key.size()) != digest_key) return bad("the manifest has no digest at its end");
  if (text.substr(body.size() + digest_key.size(), digest_digits) != sha256_of(body))
    return bad("the manifest is not what its digest says");
  Manifest manifest;
  auto const json = std::string(body) + "}";
  auto const problem =
      http::codec::read(http::codec::codec<Manifest>, &manifest, json, http::UnknownFields::ignore, text_limit_bytes);
  if (problem) return bad("the manifest: " + problem->detail);
  if (manifest.format != format) return bad("the manifest has the format " + manifest.format.substr(0, 80));
  return manifest;
}

Status check(Manifest const& manifest) {
  std::set<std::string_view> file_names;
  std::map<std::string_view, std::map<std::string_view, std::vector<PieceRecord const*>>> arrays;
  for (auto const& file : manifest.files) {
    if (!is_plain_name(file.name)) return bad("a file has no plain name");
    if (!file_names.insert(file.name).second) return bad("the file " + file.name + " is listed twice");
    for (auto const& piece : file.pieces) arrays[piece.parameter][piece.array].push_back(&piece);
  }
  std::set<std::string_view> names;
  for (auto const& parameter : manifest.parameters) {
    if (!names.insert(parameter.name).second) return bad("the parameter " + parameter.name + " is listed twice");
    if (!parse_dtype(parameter.dtype)) return bad(parameter.name + " has the unknown dtype " + parameter.dtype);
    auto const elements = element_count(parameter);
    if (elements.has_error()) return elements.error();
    auto const& own = arrays[parameter.name];
    auto const is_uncut = [](auto const& array) { return array.second.front()->elements_each == 0; };
    if (!own.contains(values_array) && std::none_of(own.begin(), own.end(), is_uncut))
      return bad("there are no values of " + parameter.name);
    for (auto const& [array, pieces] : own) {
      auto const what = std::string(array) + " of " + parameter.name;
      if (auto const covered = check_cover(what, pieces, *elements); covered.has_error()) return covered;
    }
  }
  for (auto const& [name, pieces] : arrays)
    if (!names.contains(name)) return bad("there are pieces of " + std::string(name) + ", which is not listed");
  return ok();
}

}  // namespace chorus::checkpoints

CHORUS_HTTP_MESSAGE(chorus::checkpoints::Manifest)
CHORUS_HTTP_MESSAGE(chorus::checkpoints::FileRecord)
