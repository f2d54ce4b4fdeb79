// The runs of an engine by their numbers: those under way, and what is kept of those that have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/engine/run/bounded_map.hpp"
#include "worker/engine/run/run.hpp"
#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/once_queue.hpp"

namespace chorus::engine {

class SendConnection;

// Used on the data thread only.
class RunTable {
 public:
  // Few entries; lookup by number is the most frequent operation.
  struct Numbered {
    std::uint64_t number = 0;
    std::unique_ptr<Run> run;
  };
  // The one run outside the list: an exchange that has sent its message. Nothing else has happened to the run, except
  // that the peer's message may have arrived: then the run ends as soon as no call is under way.
  struct Exchange {
    std::unique_ptr<Run> run;
    SendConnection* send_connection = nullptr;
    bool has_arrived = false;
  };

  RunTable() = default;
  RunTable(RunTable const&) = delete;
  RunTable& operator=(RunTable const&) = delete;

  // The run of this number if it is under way, as an ordinary run if it was an exchange; null otherwise.
  [[nodiscard]] Run* find(std::uint64_t number);
  // The ordinary runs.
  [[nodiscard]] std::vector<Numbered> const& all() const { return runs_; }
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  // Those that use a GPU.
  [[nodiscard]] std::vector<Run*> const& on_devices() const { return on_devices_; }
  // Adds a run that is to be worked on. Its channels are not attached to their send connections yet.
  Run& add(std::unique_ptr<Run> run);
  [[nodiscard]] std::unique_ptr<Run> take(std::uint64_t number);  // is an ordinary run

  // The runs that can go on.
  [[nodiscard]] OnceQueue<Run>& dirty() { return dirty_; }
  // Runs that have ended, to be destroyed when no call is under way.
  [[nodiscard]] std::vector<std::unique_ptr<Run>>& dead() { return dead_; }

  [[nodiscard]] Exchange& exchange() { return exchange_; }
  [[nodiscard]] Exchange const& exchange() const { return exchange_; }
  // True if the run is an exchange that waits for its coalesced frame.
  [[nodiscard]] bool awaits_coalesced_frame(std::uint64_t number) const {
    return exchange_.run != nullptr && !exchange_.has_arrived && exchange_.run->spec().run == number;
  }
  // Makes an exchange that waits an ordinary run. `taken`: how much of its message the link has taken.
  void unfold_exchange(links::Taken taken = links::Taken::whole);

  [[nodiscard]] EndedRun const* find_ended(std::uint64_t number) const { return ended_.find(number); }
  EndedRun& record_end(Run const& run);  // without its failure, which the caller sets
  // A run that was not started here, or whose spec does not matter any more.
  EndedRun& record_end(std::uint64_t number, std::optional<std::uint64_t> token, Failure failure);

 private:
  static constexpr std::size_t ended_max = 1024;

  std::vector<Numbered> runs_;
  Exchange exchange_;
  std::vector<Run*> on_devices_;
  OnceQueue<Run> dirty_;
  std::vector<std::unique_ptr<Run>> dead_;
  BoundedMap<EndedRun, ended_max> ended_;
};

}  // namespace chorus::engine
