#include "worker/parameters/checkpoints/manifest.hpp"

#include <doctest/doctest.h>

#include "worker/parameters/checkpoints/errc.hpp"

using namespace chorus;
using namespace chorus::checkpoints;

namespace {

PieceRecord piece(std::uint64_t begin, std::uint64_t end, std::string array = "values",
                  std::uint64_t elements_each = 1) {
  return {"w", std::move(array), "t", "f32", begin, end, elements_each};
}

// A manifest of one parameter of 12 elements, with these pieces in one file.
Manifest manifest_of(std::vector<PieceRecord> pieces) {
  Manifest manifest;
  manifest.number = 7;
  manifest.parameters = {{"w", "f32", {4, 3}, R"({"clock":[1,2]})"}};
  manifest.files = {{"a.safetensors", 100, "00", "11", std::move(pieces), {{"w", 0, 12, "{\"q\":\"\\\"\"}"}}}};
  return manifest;
}

bool is_whole(std::vector<PieceRecord> pieces) {
  auto const checked = check(manifest_of(std::move(pieces)));
  if (checked.has_error()) CHECK(checked.error().code == CheckpointErrc::bad_manifest);
  return checked.has_value();
}

}  // namespace

TEST_CASE("a manifest is read as it was written") {
  auto const manifest = manifest_of({piece(0, 12)});
  CHECK(parse_manifest(to_text(manifest)).value() == manifest);
  Manifest const empty;
  CHECK(parse_manifest(to_text(empty)).value() == empty);
  CHECK(check(empty).has_value());
}

TEST_CASE("a manifest with a changed, added or removed byte is refused") {
  auto const text = to_text(manifest_of({piece(0, 12)}));
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK(parse_manifest(changed).has_error());
    CHECK(parse_manifest(text.substr(0, at)).has_error());
  }
  CHECK(parse_manifest(text + " ").has_error());
  CHECK(parse_manifest("").has_error());
}

TEST_CASE("another format is refused") {
  auto manifest = manifest_of({piece(0, 12)});
  manifest.format = "chorus-checkpoint/2";
  CHECK(parse_manifest(to_text(manifest)).error().code == CheckpointErrc::bad_manifest);
}

TEST_CASE("every element of an array is in one piece") {
  CHECK(is_whole({piece(0, 12)}));
  CHECK(is_whole({piece(5, 12), piece(0, 5)}));
  CHECK(is_whole({piece(0, 12), piece(0, 12, "momentum")}));
  CHECK(is_whole({piece(0, 12), piece(0, 6, "row_steps", 3), piece(6, 12, "row_steps", 3)}));
  CHECK_FALSE(is_whole({}));
  CHECK_FALSE(is_whole({piece(0, 11)}));
  CHECK_FALSE(is_whole({piece(1, 12)}));
  CHECK_FALSE(is_whole({piece(0, 5), piece(6, 12)}));
  CHECK_FALSE(is_whole({piece(0, 6), piece(5, 12)}));
  CHECK_FALSE(is_whole({piece(0, 12), piece(0, 12)}));
  CHECK_FALSE(is_whole({piece(0, 13)}));
  CHECK_FALSE(is_whole({piece(12, 0)}));
  CHECK_FALSE(is_whole({piece(0, 12, "momentum")}));
  CHECK_FALSE(is_whole({piece(0, 12), piece(0, 6, "momentum")}));
  CHECK_FALSE(is_whole({piece(0, 12), piece(0, 5, "row_steps", 3), piece(5, 12, "row_steps", 3)}));
  // Arrays that cannot be split need not cover the parameter, and may replace the values.
  CHECK(is_whole({piece(0, 12), piece(0, 6, "window", 0)}));
  CHECK(is_whole({piece(0, 6, "rows", 0), piece(6, 12, "rows", 0)}));
}

TEST_CASE("a manifest that contradicts itself, or has names that lead elsewhere, is refused") {
  auto const refused = [](auto change) {
    auto manifest = manifest_of({piece(0, 12)});
    change(manifest);
    return check(manifest).has_error();
  };
  CHECK_FALSE(refused([](Manifest&) {}));
  CHECK(refused([](Manifest& m) { m.parameters.push_back(m.parameters[0]); }));
  CHECK(refused([](Manifest& m) { m.parameters.clear(); }));
  CHECK(refused([](Manifest& m) { m.parameters[0].dtype = "f31"; }));
  CHECK(refused([](Manifest& m) { m.parameters[0].shape = {std::uint64_t{1} << 32, std::uint64_t{1} << 32}; }));
  CHECK(refused([](Manifest& m) { m.files.push_back({"a.safetensors", 1, "", "", {}, {}}); }));
  CHECK(refused([](Manifest& m) { m.files[0].pieces[0].dtype = "x"; }));
  CHECK(refused([](Manifest& m) {
    m.files[0].pieces.push_back(m.files[0].pieces[0]);
    m.files[0].pieces[1].parameter = "v";
  }));
  for (auto const* name : {"", "../a", "/etc/passwd", ".", "..", "a/b", ".hidden", "a b"})
    CHECK(refused([&](Manifest& m) { m.files[0].name = name; }));
}
