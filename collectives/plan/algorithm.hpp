// What the author of an algorithm writes: which chunks move in which round, for one rank at a time.
//
// The rules of a round: sends read what was there when the round began; receives and local operations land at its end,
// in the order in which they were emitted. Authors write no dependencies, no message numbers and no in-place variants:
// passes derive them (program.hpp). There is no barrier between rounds when a plan runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "collectives/core/result.hpp"
#include "collectives/plan/instruction.hpp"
#include "collectives/plan/spec.hpp"

namespace chorus::plan {

enum class Final : bool { no, yes };

// Where emit() writes one round. The two slices of a call have equal count and stride.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void put(Instruction const& instruction) = 0;

  void send(Rank peer, Slice src);
  void recv(Rank peer, Slice dst);
  void recv_reduce(Rank peer, Slice operand, Slice dst, Final final = Final::no);  // dst = operand (op) received
  void copy(Slice src, Slice dst, Final final = Final::no);
  void reduce(Slice src, Slice dst, Final final = Final::no);  // dst = dst (op) src
};

// A pure description: functions of (spec, rank, round). Lives in a constant table, is never registered.
struct Algorithm {
  std::string_view name;
  std::string_view summary;                   // one line for people: steps and bytes
  Status (*check)(Spec const& spec);          // beyond plan::check(spec)
  std::uint32_t (*chunks)(Spec const& spec);  // C: the vector is cut into this many chunks
  std::uint32_t (*scratch_chunks)(Spec const& spec, Rank rank);
  std::uint32_t (*rounds)(Spec const& spec, Rank rank);
  void (*emit)(Spec const& spec, Rank rank, std::uint32_t round, Sink& sink);  // random access, no state

  bool rooted = false;      // one rank, Spec::root, plays a part of its own
  bool uses_arity = false;  // Spec::arity changes the plan

  // Every message is received into the chunks of the vector from which it was sent. Then the digests of a channel cover
  // which chunks travel. False where scratch is at one end, or where chunks move, as in a gather.
  bool same_chunks_on_both_ends = true;
};

}  // namespace chorus::plan
