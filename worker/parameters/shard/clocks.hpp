// How far each client has come, and what that lets others read and push: the one number `staleness`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::parameters {

// A push of clock k says that its client has done clock k. A reader at clock c sees everything of the clocks up to
// c - staleness - 1, of every client. With staleness -1 nothing is counted. A value.
class Clocks {
 public:
  // `clients` in the order in which gradients are summed.
  Clocks(std::int64_t staleness, std::vector<std::string> const& clients);

  [[nodiscard]] bool count() const { return staleness_ >= 0; }
  [[nodiscard]] bool in_rounds() const { return staleness_ == 0; }

  // The place of a client in the order; nothing for one whose clock does not count.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view client) const;
  [[nodiscard]] std::uint64_t done(std::size_t place) const { return clients_[place].done; }
  void advance(std::size_t place, std::uint64_t clock) { clients_[place].done = clock + 1; }

  // Whether a client at this clock may read, and push.
  [[nodiscard]] bool is_open(std::uint64_t clock) const;
  // Who holds it up, in order.
  [[nodiscard]] std::vector<std::string> awaited(std::uint64_t clock) const;

  [[nodiscard]] std::uint64_t slowest() const;  // clocks that all have done; 0 without clients
  [[nodiscard]] std::uint64_t fastest() const;
  [[nodiscard]] std::size_t size() const { return clients_.size(); }

  // Other clients from now on. Who stays keeps its clock, a newcomer begins with the slowest of those that stay.
  void change(std::vector<std::string> const& clients);

  struct Progress {
    std::string client;
    std::uint64_t done = 0;  // clocks
    friend bool operator==(Progress const&, Progress const&) = default;
  };
  [[nodiscard]] std::vector<Progress> const& progress() const { return clients_; }
  void restore(std::vector<Progress> progress) { clients_ = std::move(progress); }

 private:
  [[nodiscard]] std::uint64_t needed(std::uint64_t clock) const;

  std::int64_t staleness_;
  std::vector<Progress> clients_;
};

}  // namespace chorus::parameters
