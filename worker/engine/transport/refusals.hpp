// The runs that a receiving end has refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/transport/connection.hpp"

namespace chorus::engine {

// Data thread only.
class Refusals {
 public:
  // The connection outlives this object.
  explicit Refusals(Connection& connection) : connection_(connection) {}
  Refusals(Refusals const&) = delete;
  Refusals& operator=(Refusals const&) = delete;

  // Tells the peer that the run is refused, with run 0: the link. What still arrives for the run is dropped.
  void refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why);
  // Refuses the link for a frame that breaks its rules, and returns the error that ends it.
  [[nodiscard]] Status bad_frame(std::string why);

  // Only the latest runs are kept.
  [[nodiscard]] bool has(std::uint64_t run) const;
  [[nodiscard]] bool has_forgotten_some() const { return has_forgotten_; }

 private:
  static constexpr std::size_t kept_max = 64;

  Connection& connection_;
  std::vector<std::uint64_t> kept_;  // runs, the latest last
  bool has_forgotten_ = false;
};

}  // namespace chorus::engine
