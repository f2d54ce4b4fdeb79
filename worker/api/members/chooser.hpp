// Which algorithm does a call: alike on all members, for members that choose differently refuse each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "worker/api/joined_group.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/service/collectives/groups/group.hpp"

namespace chorus::embedded {

// One call at a time.
class Chooser {
 public:
  // The group as the coordinator described it: its table is what members choose by over links.
  explicit Chooser(::chorus::api::Group group)
      : group_(std::move(group)), segment_bytes_(service::segment_bytes_of(group_)) {}

  // `dtype`: of the tensor, whose size `bytes` is. `path`: of Group::path(). `in_place`: what is read is overwritten.
  // Where members share memory nothing is sent, so the coordinator's table, which prices links, does not apply: they
  // choose by rules that are the same in every build of a release. Whoever names an algorithm gets it. What is returned
  // is kept for calls of the same kind, and is the caller's to complete, until the next one: to make such a structure
  // anew takes as long as a tenth of a small call over shared memory. Errors: PlanErrc, naming the algorithms that
  // there are.
  [[nodiscard]] Result<CallOptions*> choose(Op op, std::uint64_t bytes, Dtype dtype, std::string_view path,
                                            bool in_place, CollectiveOptions const& options);

 private:
  struct Choice {
    plan::Algorithm const* algorithm = nullptr;
    std::uint32_t root = 0;
    std::uint32_t arity = 2;
    std::vector<std::uint32_t> shape;
    std::optional<Compression> compression;
    std::vector<plan::Rank> by_position;  // over links; where members share memory all are equally near
  };
  struct Answer {
    Choice choice;
    CallOptions call;
  };
  struct Known {
    Op op;
    std::uint64_t bytes;
    Dtype dtype;
    ReduceOp reduce;
    std::uint32_t root;
    bool in_place;
    std::string algorithm;
    std::optional<CompressionWish> compression;
    Answer answer;
  };

  [[nodiscard]] Result<Answer*> find(Op op, std::uint64_t bytes, Dtype dtype, bool shares_memory, bool in_place,
                                     CollectiveOptions const& options);
  [[nodiscard]] Result<Choice> decide(Op op, std::uint64_t bytes, Dtype dtype, bool shares_memory, bool in_place,
                                      CollectiveOptions const& options) const;
  [[nodiscard]] Result<Choice> for_shared_memory(Op op, std::uint64_t bytes, bool in_place, std::uint32_t root,
                                                 bool is_large_average) const;

  [[nodiscard]] std::uint32_t number_of_members() const { return static_cast<std::uint32_t>(group_.members.size()); }

  ::chorus::api::Group const group_;
  std::uint64_t const segment_bytes_;
  std::vector<Known> known_;  // the last one used first
};

}  // namespace chorus::embedded
