// The runs that an end of a link has refused or given up, and of which frames may still be on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/transport/connection.hpp"

namespace chorus::engine {

// The latest of those runs. Data thread only.
class DroppedRuns {
 public:
  void add(std::uint64_t run);
  // True if a frame of a run that is not known here may be one of these. Once one of them is forgotten: of any run.
  [[nodiscard]] bool may_have(std::uint64_t run) const;

 private:
  static constexpr std::size_t kept_max = 64;

  std::vector<std::uint64_t> kept_;  // the latest last
  bool has_forgotten_ = false;
};

// Those of a receiving end. Data thread only.
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

  // What still arrives for the run is dropped.
  void drop(std::uint64_t run) { dropped_.add(run); }
  [[nodiscard]] bool drops(std::uint64_t run) const { return dropped_.may_have(run); }

 private:
  Connection& connection_;
  DroppedRuns dropped_;
};

}  // namespace chorus::engine
