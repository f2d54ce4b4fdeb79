#include <doctest/doctest.h>

#include <random>
#include <set>

#include "worker/parameters/shard/pushes/window.hpp"

namespace chorus::parameters {
namespace {

using enum Window::Place;

// Handles an arriving push like a server. Returns true if it takes effect.
bool arrive(Window& window, Client const& client, std::uint64_t sequence) {
  if (window.place(client, sequence) != next) return false;
  window.advance(client);
  return true;
}

}  // namespace

TEST_CASE("a window takes the numbers of a client in order, and each once") {
  Window window;
  Client const client{"c", 0};
  CHECK(window.place(client, 1) == ahead);
  CHECK(arrive(window, client, 0));
  CHECK(window.place(client, 0) == seen);
  CHECK(window.place(client, 2) == ahead);
  CHECK(arrive(window, client, 1));
  CHECK(window.next_sequence(client) == 2);
}

TEST_CASE("clients have windows of their own") {
  Window window;
  CHECK(arrive(window, {"a", 0}, 0));
  CHECK(window.place({"b", 0}, 0) == next);
  CHECK(window.place({"b", 0}, 1) == ahead);
}

TEST_CASE("a client that starts again begins at 0, and pushes of its older incarnation are refused") {
  Window window;
  CHECK(arrive(window, {"c", 5}, 0));
  CHECK(arrive(window, {"c", 5}, 1));
  CHECK(window.place({"c", 6}, 0) == next);
  CHECK(window.place({"c", 6}, 2) == ahead);
  CHECK(arrive(window, {"c", 6}, 0));
  CHECK(window.place({"c", 5}, 2) == fenced);
  CHECK(window.place({"c", 5}, 0) == fenced);
  CHECK(window.size() == 1);
}

TEST_CASE("whatever is lost, repeated and reordered on the way, every push takes effect once and in order") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Window window;
    std::vector<std::uint64_t> effects;
    std::uint64_t acknowledged = 0;  // the client may send up to four pushes beyond this
    constexpr std::uint64_t pushes = 40;
    while (acknowledged < pushes) {
      auto const sequence = std::min<std::uint64_t>(acknowledged + random() % 5, pushes - 1);
      if (random() % 4 == 0) continue;  // the push is lost
      if (arrive(window, {"c", 0}, sequence)) effects.push_back(sequence);
      if (random() % 4 == 0) continue;  // the answer is lost
      if (sequence == acknowledged && window.place({"c", 0}, sequence) == seen) ++acknowledged;
    }
    std::vector<std::uint64_t> once(pushes);
    for (std::uint64_t i = 0; i < pushes; ++i) once[i] = i;
    CHECK(effects == once);
  }
}

}  // namespace chorus::parameters
