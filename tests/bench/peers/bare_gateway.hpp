// What a push of rows through one of two owners cannot do without: a gateway receives row numbers and rows, sends the
// rows of the other half to their owner, and both add their rows to those of an array.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

#include "bare_server.hpp"

namespace bare {

inline constexpr std::size_t row_elements = 64, row_bytes = row_elements * sizeof(float);
inline constexpr std::size_t pushed_bytes_each = sizeof(std::uint64_t) + row_bytes;
inline constexpr std::size_t rows_per_pushed = 10;  // rows of the array for each one that is pushed

// A body: ascending numbers, each tenth on average, then as many rows of zeros.
inline std::vector<char> rows_body(std::size_t count) {
  std::vector<char> body(count * pushed_bytes_each, 0);
  std::mt19937_64 random(7);
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const number = i * rows_per_pushed + random() % rows_per_pushed;
    std::memcpy(body.data() + i * sizeof number, &number, sizeof number);
  }
  return body;
}

// Row numbers and rows in memory that is kept, and the array to which rows are added: all in huge pages.
class Rows {
 public:
  Rows(std::size_t pushed, std::size_t first_row, std::size_t rows)
      : first_row_(first_row),
        numbers_(reinterpret_cast<std::uint64_t*>(make_array(2 * pushed))),
        gradient_(make_array(pushed * row_elements)),
        values_(make_array(rows * row_elements)) {}

  [[nodiscard]] std::uint64_t* numbers() { return numbers_; }
  [[nodiscard]] char* gradient() { return reinterpret_cast<char*>(gradient_); }
  void add(std::size_t first, std::size_t last) {
    constexpr std::size_t ahead = 8;
    for (auto i = first; i < last; ++i) {
      if (i + ahead < last) __builtin_prefetch(values_ + (numbers_[i + ahead] - first_row_) * row_elements, 1);
      auto* const row = values_ + (numbers_[i] - first_row_) * row_elements;
      for (std::size_t k = 0; k < row_elements; ++k) row[k] += gradient_[i * row_elements + k];
    }
  }

 private:
  std::size_t const first_row_;
  std::uint64_t* const numbers_;
  float* const gradient_;
  float* const values_;
};

inline bool receive_all(int handle, void* into, std::size_t bytes) {
  auto* at = static_cast<char*>(into);
  while (bytes > 0) {
    auto const part = ::recv(handle, at, bytes, 0);
    if (part <= 0) return false;
    at += part;
    bytes -= static_cast<std::size_t>(part);
  }
  return true;
}

// The owner of the second half: numbers, rows, then one byte when they are added.
[[noreturn]] inline void own_rows(int handle, std::size_t count) {
  Rows rows(count, count * rows_per_pushed, count * rows_per_pushed);
  while (receive_all(handle, rows.numbers(), count * sizeof(std::uint64_t)) &&
         receive_all(handle, rows.gradient(), count * row_bytes)) {
    rows.add(0, count);
    send_all(handle, "k", nullptr, 0);
  }
  std::exit(0);
}

enum class Passing {
  whole,     // when the push has arrived
  by_owner,  // the rows of an owner when they have arrived
};

// Serves pushes of `count` rows, a half of them its own; 'p' brings one and is answered with a byte.
[[noreturn]] inline void pass_rows_on(int listener, int owner, std::size_t count, Passing passing) {
  auto const half = count / 2;
  Rows rows(count, 0, half * rows_per_pushed);
  std::atomic<int> ready = 0, added = 0;  // pushes of which the own rows have come, and are added
  std::thread adder([&] {
    for (int done = 0;; ++done) {
      ready.wait(done);
      rows.add(0, half);
      added.store(done + 1);
      added.notify_all();
    }
  });
  auto const add_own_rows = [&ready] {
    ready.fetch_add(1);
    ready.notify_all();
  };
  for (int pushes = 0;;) {
    auto const handle = ::accept(listener, nullptr, nullptr);
    if (handle < 0) give_up("accept");
    char command = 0;
    while (::recv(handle, &command, 1, 0) == 1) {
      if (!receive_all(handle, rows.numbers(), count * sizeof(std::uint64_t)) ||
          !receive_all(handle, rows.gradient(), half * row_bytes))
        break;
      if (passing == Passing::by_owner) add_own_rows();
      if (!receive_all(handle, rows.gradient() + half * row_bytes, half * row_bytes)) break;
      if (passing == Passing::whole) add_own_rows();
      send_all(owner, {reinterpret_cast<char const*>(rows.numbers() + half), half * sizeof(std::uint64_t)},
               rows.gradient() + half * row_bytes, half * row_bytes);
      if (!receive_all(owner, &command, 1)) std::exit(0);
      added.wait(pushes);
      ++pushes;
      send_all(handle, "k", nullptr, 0);
    }
    ::close(handle);
  }
}

}  // namespace bare
