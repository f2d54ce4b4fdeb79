// The clocks of a parameter's clients, and which reads and pushes the bound `staleness` allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chorus::parameters {

// A push of clock k means that its client has done clock k. A reader at clock c sees every client's pushes of all
// clocks up to c - staleness - 1. With staleness -1 clocks are not counted. A value.
class Clocks {
 public:
  // `clients`: in the order in which gradients are summed.
  Clocks(std::int64_t staleness, std::vector<std::string> const& clients);

  [[nodiscard]] bool count() const { return staleness_ >= 0; }
  [[nodiscard]] bool in_rounds() const { return staleness_ == 0; }

  // Returns the place of a client in the order; nothing for a client whose clock does not count.
  [[nodiscard]] std::optional<std::size_t> place(std::string_view client) const;
  [[nodiscard]] std::uint64_t done(std::size_t place) const { return clients_[place].done; }
  void advance(std::size_t place, std::uint64_t clock) { clients_[place].done = clock + 1; }

  // Returns true if a client at this clock may read and push.
  [[nodiscard]] bool is_open(std::uint64_t clock) const;
  // Returns the clients for which a client at this clock waits, in order.
  [[nodiscard]] std::vector<std::string> awaited(std::uint64_t clock) const;

  [[nodiscard]] std::uint64_t slowest() const;  // clocks that all clients have done; 0 without clients
  [[nodiscard]] std::uint64_t fastest() const;
  [[nodiscard]] std::size_t size() const { return clients_.size(); }

  // Replaces the clients. Clients in both lists keep their clocks; a new client begins with the slowest of these.
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
