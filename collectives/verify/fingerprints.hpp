// Fingerprints: the value of a chunk in 64 bits, the sum of one random number per contribution. For groups whose
// multisets (Contributions) would not fit in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/plan/spec.hpp"

namespace chorus::verify {

// The same functions as Contributions, each with an error probability of about 2^-64: two different multisets have the
// same sum of random 64-bit numbers that rarely. A value also has the number of its chunk; a sum over different chunks
// is never complete. Source: multiset hashing by addition, Clarke et al., ASIACRYPT 2003.
class Fingerprints {
 public:
  using Id = std::uint32_t;
  static constexpr Id undefined = 0;

  [[nodiscard]] Id input(plan::Rank rank, std::uint32_t chunk, bool finished = false);
  [[nodiscard]] Id sum(Id a, Id b);
  [[nodiscard]] Id finish(Id value);

  [[nodiscard]] bool finished(Id value) const { return values_[value].finished; }
  // `ranks` is the same in all calls on one object.
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks);
  [[nodiscard]] bool complete(Id value, std::uint32_t ranks, std::uint32_t chunk);
  [[nodiscard]] bool is_input(Id value, plan::Rank rank, std::uint32_t chunk) const;

  [[nodiscard]] bool is_alone(Id value) const { return values_[value].alone; }

  // Returns text like "chunk 3, fingerprint 0123456789abcdef".
  [[nodiscard]] std::string describe(Id value) const;

 private:
  static constexpr std::uint32_t mixed = 0xffffffff;  // chunk of a sum over several chunks
  struct Value {
    std::uint64_t hash = 0;
    std::uint32_t chunk = 0;
    bool finished = false;
    bool alone = false;  // an input
  };

  Id keep(Value value);

  std::vector<Value> values_{Value{}};
  std::vector<std::uint64_t> complete_;  // by chunk; 0: not yet computed
};

}  // namespace chorus::verify
