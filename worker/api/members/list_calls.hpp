// Calls of a member with lists of tensors.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "worker/api/joined_group.hpp"
#include "worker/api/members/buffers.hpp"
#include "worker/api/members/call_frame.hpp"
#include "worker/api/members/chooser.hpp"
#include "worker/engine/groups/fused_blocks.hpp"
#include "worker/engine/groups/fused_calls.hpp"
#include "worker/engine/groups/group.hpp"

namespace chorus::embedded {

// A list of tensors for an operation with blocks. In place `inputs` is empty.
struct BlockLists {
  std::vector<ConstTensorView> inputs;
  std::vector<TensorView> outputs;
  bool in_place = false;
};

// On one's turn. Errors: as those of JoinedGroup.
class ListCalls {
 public:
  // The references outlive the object. arena: null if no memory is shared.
  ListCalls(Group& group, Place place, Chooser& chooser, CallFrame& frame, memory::Arena* arena)
      : group_(group),
        place_(place),
        chooser_(chooser),
        frame_(frame),
        fused_(group, place.rank, arena),
        fused_blocks_(group, place.rank, place.size, arena) {}
  ListCalls(ListCalls const&) = delete;
  ListCalls& operator=(ListCalls const&) = delete;

  [[nodiscard]] Status run(Op op, std::span<TensorView const> tensors, CollectiveOptions const& options);
  [[nodiscard]] Status run(Op op, BlockLists const& lists, CollectiveOptions const& options);

 private:
  using RunList = std::function<engine::RunResult(engine::ChooseForBucket const& choose)>;

  // What is wrong with options of a list, whatever its tensors are.
  [[nodiscard]] Status check(Op op, CollectiveOptions const& options) const;
  [[nodiscard]] Status run_list(Op op, bool in_place, CollectiveOptions const& options, RunList const& run);

  Group& group_;
  Place const place_;
  Chooser& chooser_;
  CallFrame& frame_;
  engine::FusedCalls fused_;
  engine::FusedBlocks fused_blocks_;
};

}  // namespace chorus::embedded
