#include "worker/links/host_number.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace chorus::links;

TEST_CASE("a host has a number, the same for every process") {
  CHECK(host_number().has_value());
  CHECK(host_number() == host_number());
}

TEST_CASE("a host's number is the first half of its boot id, and nothing without a boot id") {
  auto const file = std::filesystem::temp_directory_path() / ("chorus-boot-id-" + std::to_string(*host_number()));
  auto const read = [&file](std::string const& text) {
    std::ofstream(file) << text;
    return host_number(file.native());
  };
  CHECK(read("0123abcd-4567-89ef-0000-111122223333\n") == 0x0123abcd456789ef);
  for (auto const* wrong :
       {"", "0123abcd", "0123abcd-4567-89ef-0000-1111222233334", "x123abcd-4567-89ef-0000-111122223333"})
    CHECK(!read(wrong));
  std::filesystem::remove(file);
  CHECK(!host_number(file.native()));
}
