// Whole lives of groups, each from one seed: which collectives are called, which rank calls late, how the bytes are cut
// and interleaved, which byte is changed on the way, which rank is killed, stopped or cut off, and when; on a clock
// that only the test moves. A seed that fails is printed, and fails again:
//
//   CHORUS_SEEDS=100000 build/release/tests/test_engine_simulation     that many; for ever with 0
//   CHORUS_SIMULATION_SECONDS=120 build/release/tests/test_engine_simulation    as many as there is time for
//   CHORUS_SEED=4711 build/release/tests/test_engine_simulation        this one alone
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <iostream>
#include <optional>
#include <set>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/algorithms/representative.hpp"
#include "tests/support/process.hpp"
#include "worker/engine/testing/loopback_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds timeout = 8s;
constexpr std::chrono::milliseconds tick = 50ms;

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_(seed), fleet_(options()) {}

  // Empty, or the promise that was broken.
  std::string live() {
    prepare();
    auto const end = fleet_.now() + 2 * timeout + 1s;
    while (!everybody_has_ended() && fleet_.now() < end) {
      happen();
      if (below(3) != 0) fleet_.let_move(below(below(10) == 0 ? 100000 : 200));
      fleet_.pass(below(4) == 0 ? tick : 1ms);
    }
    fleet_.let_move();
    return broken_promise();
  }

  [[nodiscard]] std::size_t faults() const { return faults_; }

 private:
  struct Call {
    Case what;
    std::unique_ptr<Collective> collective;
    std::vector<bool> called;             // by rank
    std::optional<plan::Rank> is_absent;  // never calls
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  FleetOptions options() {
    FleetOptions options;
    // Two members that repeat a small call use the exchange (pair_exchange.hpp).
    is_of_two_ = below(3) == 0;
    options.ranks = static_cast<std::uint32_t>(is_of_two_ ? 2 : 2 + below(5));
    options.network = {random_(), 200 + below(20000), 1 + below(5000),
                       below(2) == 0 ? links::Framing::checksummed : links::Framing::plain};
    has_checksums_ = options.network.framing == links::Framing::checksummed;
    options.eager_bytes = is_of_two_ ? 8192 : below(2) == 0 ? 0 : below(8192);
    return options;
  }

  Case some_case(std::uint64_t run) {
    Case c;
    c.op = all_ops[below(all_ops.size())];
    auto const able = algorithms::all_for(c.op);
    std::vector<plan::Spec> specs;
    while (specs.empty()) {
      c.algorithm = able[below(able.size())];
      specs = algorithms::representative_specs(*c.algorithm, c.op, fleet_.ranks());
    }
    auto const& spec = specs[below(specs.size())];
    c.root = spec.root;
    c.arity = spec.arity;
    c.shape = spec.shape;
    // Whole blocks, because some algorithms need equal ones.
    c.elements = fleet_.ranks() * (c.op == Op::barrier ? 1 : below(3) == 0 ? below(3) : below(1500));
    c.dtype = Dtype::i32;
    c.segment_bytes = 64 << below(7);
    c.window = static_cast<std::uint32_t>(1 + below(4));
    c.timeout = timeout;
    c.run = run;
    return c;
  }

  Case small_case(std::uint64_t run) {
    Case c;
    c.algorithm = &algorithms::mesh;
    c.elements = run % 7 == 6 ? 100 : 2;
    c.dtype = Dtype::i32;
    c.timeout = timeout;
    c.run = run;
    return c;
  }

  void prepare() {
    auto const count = 1 + below(is_of_two_ ? 8 : 3);
    for (std::uint64_t run = 1; run <= count; ++run) {
      auto& call = calls_.emplace_back();
      call.what = is_of_two_ ? small_case(run) : some_case(run);
      call.collective = std::make_unique<Collective>(fleet_, call.what, fleet_.now());
      call.called.resize(fleet_.ranks());
    }
    fault_free_ = below(5) == 0;
    rarity_ = 10 + below(500);  // some live until their deadlines
    kinds_ = below(32);
    if (fault_free_ || below(4) != 0) return;
    ++faults_;
    calls_[below(count)].is_absent = static_cast<plan::Rank>(below(fleet_.ranks()));
  }

  // Calls of a rank come one after the other, as in a group.
  Call& next_call_of(plan::Rank rank) {
    return *std::find_if(calls_.begin(), calls_.end() - 1,
                         [rank](Call const& call) { return !call.collective->has_ended(rank); });
  }

  void happen() {
    // A random member makes a call that it has not made yet, unless it is dead or stopped.
    auto const rank = static_cast<plan::Rank>(below(fleet_.ranks()));
    auto& call = is_of_two_ ? next_call_of(rank) : calls_[below(calls_.size())];
    if (!call.called[rank] && call.is_absent != rank && !dead_.contains(rank) && !stopped_.contains(rank)) {
      call.called[rank] = true;
      call.collective->start(rank);
    }
    if (fault_free_ || below(rarity_) != 0) return;
    auto const victim = static_cast<plan::Rank>(below(fleet_.ranks()));
    auto const kind = below(has_checksums_ ? 5 : 4);
    if ((kinds_ >> kind & 1) == 0) return;
    ++faults_;
    switch (kind) {
      case 0:
        if (dead_.size() + 1 < fleet_.ranks()) kill(victim);
        break;
      case 1:
        fleet_.stop(victim);
        stopped_.insert(victim);
        ever_stopped_.insert(victim);
        break;
      case 2:
        fleet_.go_on(victim);
        stopped_.erase(victim);
        break;
      case 3:
        fleet_.network().cut_at_step(1 + below(100));
        has_cut_ = true;
        break;
      default:
        fleet_.network().corrupt_at_read(1 + below(100));
        has_cut_ = true;  // a link ends
    }
  }

  void kill(plan::Rank victim) {
    fleet_.go_on(victim);
    stopped_.erase(victim);
    dead_.insert(victim);
    fleet_.kill(victim);
  }

  [[nodiscard]] bool lives(plan::Rank rank) const { return !dead_.contains(rank) && !stopped_.contains(rank); }

  [[nodiscard]] bool everybody_has_ended() const {
    for (auto const& call : calls_)
      for (plan::Rank rank = 0; rank < fleet_.ranks(); ++rank)
        if (lives(rank) && call.is_absent != rank && !(call.called[rank] && call.collective->has_ended(rank)))
          return false;
    return true;
  }

  std::string broken_promise() const {
    for (auto const& call : calls_)
      for (plan::Rank rank = 0; rank < fleet_.ranks(); ++rank) {
        auto const who = to_string(call.what) + ", rank " + std::to_string(rank);
        if (!lives(rank) || !call.called[rank]) continue;
        if (!call.collective->has_ended(rank)) return who + " hangs";
        auto const& result = call.collective->result(rank);
        if (result.status.has_value()) {
          if (auto wrong = call.collective->wrong(rank); !wrong.empty()) return "wrong: " + wrong;
          continue;
        }
        auto const& why = result.status.error();
        if (faults_ == 0) return who + " failed without a fault: " + why.detail;
        if (auto broken = unjust(result); !broken.empty()) return who + " " + broken + ": " + why.detail;
      }
    return {};
  }

  // A named culprit has caused the failure, as far as that is certain.
  std::string unjust(RunResult const& result) const {
    auto const code = result.status.error().code;
    if (code != EngineErrc::peer_lost) return {};
    if (result.culprits.empty()) return "names nobody";
    if (has_cut_) return {};
    for (auto const rank : result.culprits)
      if (!dead_.contains(rank) && !ever_stopped_.contains(rank)) return "names an innocent";
    return {};
  }

  std::mt19937_64 random_;
  bool has_checksums_ = false, is_of_two_ = false;
  LoopbackFleet fleet_;
  std::deque<Call> calls_;
  std::set<plan::Rank> dead_, stopped_, ever_stopped_;
  std::size_t faults_ = 0;
  bool has_cut_ = false;
  bool fault_free_ = false;
  std::uint64_t rarity_ = 0, kinds_ = 0;
};

}  // namespace

TEST_CASE("whatever happens, every surviving rank ends in time, with the right result or with a culprit") {
  if (auto const seed = chorus::testing::number_from_environment("CHORUS_SEED", 0); seed != 0) {
    auto const broken = Life(seed).live();
    CHECK_MESSAGE(broken.empty(), broken);
    return;
  }
  using chorus::testing::number_from_environment;
  auto const seconds = number_from_environment("CHORUS_SIMULATION_SECONDS", 0);
  auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  auto const wanted = number_from_environment("CHORUS_SEEDS", seconds > 0 ? 0 : 1500);
  std::size_t faults = 0, seeds = 0, failed = 0;
  for (std::uint64_t seed = 1; (wanted == 0 || seed <= wanted) && failed < 5; ++seed, ++seeds) {
    if (seconds > 0 && std::chrono::steady_clock::now() >= until) break;
    Life life(seed);
    auto const broken = life.live();
    faults += life.faults();
    failed += broken.empty() ? 0 : 1;
    CHECK_MESSAGE(broken.empty(), "CHORUS_SEED=", seed, ": ", broken);
  }
  std::cout << seeds << " lives, " << faults << " faults" << std::endl;
}
