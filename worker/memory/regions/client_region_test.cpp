// Clients' memory: what is mapped, what is refused, what a truncation does.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "worker/memory/pages/errc.hpp"
#include "worker/memory/regions/client_region.hpp"
#include "worker/memory/regions/shared_region.hpp"

using namespace chorus;
using namespace chorus::memory;

namespace {

// A client's file in /dev/shm.
class Object {
 public:
  explicit Object(std::string suffix, off_t size = 10000)
      : key("/test-" + std::to_string(getpid()) + "-" + suffix),
        descriptor_(shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    REQUIRE(descriptor_ >= 0);
    resize(size);
  }
  ~Object() {
    close(descriptor_);
    unlink(path().c_str());
  }
  Object(Object const&) = delete;
  Object& operator=(Object const&) = delete;

  void resize(off_t size) const { REQUIRE(ftruncate(descriptor_, size) == 0); }
  void write(std::string const& text, off_t at) const {
    REQUIRE(pwrite(descriptor_, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string read(std::size_t size, off_t at) const {
    std::string text(size, '\0');
    REQUIRE(pread(descriptor_, text.data(), size, at) == static_cast<ssize_t>(size));
    return text;
  }
  [[nodiscard]] std::string path() const { return "/dev/shm" + key; }

  std::string const key;

 private:
  int const descriptor_;
};

std::shared_ptr<ClientRegion const> opened(Object const& object, std::uint64_t offset, std::uint64_t size) {
  auto region = ClientRegion::open("r", object.key, offset, size);
  REQUIRE(region.has_value());
  return *region;
}

MemoryErrc refusal(std::string const& key, std::uint64_t offset = 0, std::uint64_t size = 16) {
  auto const region = ClientRegion::open("r", key, offset, size);
  REQUIRE(region.has_error());
  return static_cast<MemoryErrc>(region.error().code.value());
}

}  // namespace

TEST_CASE("client and worker read what the other one writes, from any offset") {
  Object const object("offsets");
  for (std::uint64_t const offset : {0, 1, 4095, 4096, 5000, 9984}) {
    auto const region = opened(object, offset, 16);
    object.write("from the client!", static_cast<off_t>(offset));
    CHECK(std::memcmp(region->bytes().data(), "from the client!", 16) == 0);
    std::memcpy(region->bytes().data(), "from the worker!", 16);
    CHECK(object.read(16, static_cast<off_t>(offset)) == "from the worker!");
    CHECK(region->is_whole());
  }
}

TEST_CASE("a region ends within its object, and no sum overflows") {
  Object const object("sizes");
  auto const most = ~std::uint64_t{0};
  CHECK(refusal(object.key, 0, 0) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, 0, 10001) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, 9999, 2) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, 10001, 1) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, most, 2) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, 2, most) == MemoryErrc::out_of_range);
  CHECK(refusal(object.key, most, most) == MemoryErrc::out_of_range);
  CHECK(opened(object, 0, 10000)->bytes().size() == 10000);
}

TEST_CASE("keys name one file in /dev/shm and nothing else") {
  for (auto const* key : {"", "/", "x", "/.", "/..", "/../etc/passwd", "/a/b", "//a", "/a b", "/a\n", "/chorus-",
                          "/chorus-0123456789abcdef"})
    CHECK_MESSAGE(refusal(key) == MemoryErrc::bad_key, key);
  CHECK(refusal("/" + std::string(255, 'a')) == MemoryErrc::bad_key);
  CHECK(refusal(std::string("/a\0b", 4)) == MemoryErrc::bad_key);
  CHECK(refusal("/test-nobody-has-made-this") == MemoryErrc::not_shared);
  CHECK(is_client_key("/psm_0a1b"));
  CHECK(is_client_key("/.hidden"));
}

TEST_CASE("links, pipes, directories and files with two names are refused") {
  Object const object("names");
  auto const other = object.path() + "-other";
  auto const other_key = object.key + "-other";
  REQUIRE(symlink(object.path().c_str(), other.c_str()) == 0);
  CHECK(refusal(other_key) == MemoryErrc::not_shared);
  unlink(other.c_str());
  REQUIRE(mkfifo(other.c_str(), 0600) == 0);
  CHECK(refusal(other_key) == MemoryErrc::not_shared);
  unlink(other.c_str());
  REQUIRE(mkdir(other.c_str(), 0700) == 0);
  CHECK(refusal(other_key) == MemoryErrc::not_shared);
  rmdir(other.c_str());
  REQUIRE(link(object.path().c_str(), other.c_str()) == 0);
  CHECK(refusal(other_key) == MemoryErrc::not_shared);
  CHECK(refusal(object.key) == MemoryErrc::not_shared);
  unlink(other.c_str());
  CHECK(opened(object, 0, 16)->is_whole());
}

TEST_CASE("a client cannot register an arena, whatever its name is") {
  auto const arena = SharedRegion::create(random_ticket(region_unit_bytes)).value();
  CHECK(refusal("/" + file_name(arena->ticket())) == MemoryErrc::bad_key);
  auto const key = "/test-" + std::to_string(getpid()) + "-renamed";
  auto const path = "/dev/shm" + key;
  REQUIRE(rename(("/dev/shm/" + file_name(arena->ticket())).c_str(), path.c_str()) == 0);
  CHECK(refusal(key) == MemoryErrc::not_shared);
  unlink(path.c_str());
}

TEST_CASE("permissions count, also for root") {
  std::array<gid_t, 2> const groups{20, 21};
  CHECK(may_use({10, 99, 0600}, 10, groups));
  CHECK_FALSE(may_use({10, 99, 0400}, 10, groups));
  CHECK_FALSE(may_use({10, 20, 0066}, 10, groups));  // the owner's own bits count
  CHECK(may_use({11, 21, 0660}, 10, groups));
  CHECK_FALSE(may_use({11, 22, 0660}, 10, groups));
  CHECK_FALSE(may_use({11, 21, 0606}, 10, groups));
  CHECK(may_use({11, 22, 0606}, 10, groups));
  CHECK_FALSE(may_use({11, 22, 0604}, 10, groups));
  CHECK_FALSE(may_use({11, 22, 0600}, 0, groups));
}

TEST_CASE("an object that is truncated while it is mapped is damaged, and the process does not crash") {
  Object const object("truncated", 1 << 20);
  auto const untouched = opened(object, 0, 4096);
  auto const region = opened(object, 4096, (1 << 20) - 4096);
  std::memset(region->bytes().data(), 7, region->bytes().size());
  object.resize(8192);
  CHECK_FALSE(region->is_whole());
  CHECK(region->bytes().back() == std::byte{0});
  std::memset(region->bytes().data(), 8, region->bytes().size());
  CHECK_FALSE(region->is_whole());
  object.resize(1 << 20);
  CHECK_FALSE(region->is_whole());  // zeros that the client did not write may have been read
  CHECK(untouched->is_whole());
  CHECK(opened(object, 4096, (1 << 20) - 4096)->is_whole());
}

TEST_CASE("the same part of the same object is recognised, a namesake is not") {
  auto object = std::make_unique<Object>("again");
  auto const key = object->key;
  auto const region = opened(*object, 0, 100);
  CHECK(region->is_same(*opened(*object, 0, 100)));
  CHECK_FALSE(region->is_same(*opened(*object, 0, 101)));
  CHECK_FALSE(region->is_same(*opened(*object, 1, 100)));
  object.reset();
  Object const namesake("again");
  CHECK(namesake.key == key);
  CHECK_FALSE(region->is_same(*opened(namesake, 0, 100)));
}
