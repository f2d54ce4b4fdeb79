// Calls of the C interface in random order and with random arguments, right and wrong ones.
#pragma once

#include <chorus/chorus.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "library/testing/pair.hpp"

namespace chorus::library::testing {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  [[nodiscard]] bool one_in(std::uint64_t sides) { return below(sides) == 0; }
  template <class T>
  [[nodiscard]] T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

 private:
  std::mt19937_64 random_;
};

// One thread's calls. Workers and shared groups outlive them, and other threads may use the same; what a call gives
// belongs to this object, and is freed by it, in any order. Timeouts are a few milliseconds, so that a call that no
// other member answers ends soon.
class RandomCalls {
 public:
  RandomCalls(std::uint64_t seed, std::vector<chorus_worker_t*> workers, std::vector<chorus_group_t*> groups)
      : dice_(seed), error_(new_error()), workers_(std::move(workers)), shared_groups_(std::move(groups)) {}
  ~RandomCalls();
  RandomCalls(RandomCalls const&) = delete;
  RandomCalls& operator=(RandomCalls const&) = delete;

  // Makes one call. Throws if it returns what no function may return.
  void make_one();
  // Makes one call that is refused before anything is sent, on a group whose other calls go on. Throws if it is not.
  void make_wrong_one(chorus_group_t* group);

 private:
  struct Begun {
    std::vector<std::int32_t> in, out;
    chorus_received_t received{};
    Request request;
  };
  struct Registered {
    void* pages = nullptr;
    Block block;
  };
  template <class Struct>
  struct Padded {
    Struct known{};
    std::array<unsigned char, 32> unknown{};  // what a program of a later version may have set
  };

  [[nodiscard]] chorus_group_t* group();
  [[nodiscard]] chorus_worker_t* worker();
  [[nodiscard]] chorus_error_t* error() { return dice_.one_in(4) ? nullptr : error_.get(); }
  [[nodiscard]] std::size_t size(std::size_t right, std::size_t first);
  template <class Tensor>
  [[nodiscard]] Tensor any(std::vector<std::int32_t>& memory);
  [[nodiscard]] std::string const& name();
  [[nodiscard]] chorus_collective_options_t const* collective_options();
  [[nodiscard]] chorus_message_options_t const* message_options();
  [[nodiscard]] chorus_group_options_t const* group_options();
  void check(chorus_status_t status, bool may_be_pending = false) const;

  void ask_worker();
  void ask_group();
  void make_group();
  void call_collective();
  void begin_collective();
  void call_message();
  void use_request();
  void use_memory();
  void start_worker();

  Dice dice_;
  ErrorObject error_;
  std::vector<chorus_worker_t*> const workers_;
  std::vector<chorus_group_t*> const shared_groups_;
  std::vector<Group> groups_;
  std::list<Begun> begun_;
  std::list<Registered> memory_;

  Padded<chorus_collective_options_t> collective_;
  Padded<chorus_message_options_t> message_;
  Padded<chorus_group_options_t> group_;
  std::array<std::uint32_t, 3> shape_{};
  std::array<std::uint64_t, 4> counts_{}, receive_counts_{};
  std::vector<char const*> ids_;
  std::vector<std::uint32_t> ranks_;
};

}  // namespace chorus::library::testing
