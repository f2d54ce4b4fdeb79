#include "server/cli/verify_all.hpp"

#include "collectives/verify/verify.hpp"

namespace chorus::cli {
namespace {

constexpr std::uint32_t arity_low = 2;
constexpr std::uint32_t arity_high = 8;

class Verification {
 public:
  explicit Verification(VerifyWatcher const& watcher) : watcher_(watcher) {}

  void verify_ranks(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
    for (plan::Rank root = 0; root < (algorithm.rooted ? ranks : 1); ++root)
      for (auto arity = arity_low; arity <= (algorithm.uses_arity ? arity_high : arity_low); ++arity)
        for (bool const in_place : {false, true})
          verify_spec(algorithm, {.op = op,
                                  .algorithm = std::string(algorithm.name),
                                  .ranks = ranks,
                                  .root = root,
                                  .arity = arity,
                                  .in_place = in_place});
  }

  [[nodiscard]] VerifyTotals const& totals() const { return totals_; }

 private:
  void verify_spec(plan::Algorithm const& algorithm, plan::Spec const& spec) {
    if (!algorithm.check(spec)) return;  // not an operation, or not a shape, of this algorithm
    ++totals_.plans;
    auto const report = verify::check(algorithm, spec);
    if (report.ok) return;
    ++totals_.failed;
    watcher_.failure(spec, report.failure);
  }

  VerifyWatcher const& watcher_;
  VerifyTotals totals_;
};

}  // namespace

VerifyTotals verify_all(std::span<plan::Algorithm const* const> algorithms, std::uint32_t max_ranks,
                        VerifyWatcher const& watcher) {
  Verification verification(watcher);
  for (auto const* algorithm : algorithms)
    for (std::uint32_t ranks = 1; ranks <= max_ranks; ++ranks) {
      for (auto const op : all_ops) verification.verify_ranks(*algorithm, op, ranks);
      watcher.progress(std::string(algorithm->name), ranks, verification.totals());
    }
  return verification.totals();
}

}  // namespace chorus::cli
