#include "server/coordinator/collectives/plan_question.hpp"

#include <algorithm>

#include "collectives/model/choice/averages.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {

model::Alternatives alternatives(std::optional<CompressionWish> const& wish, Admitted const& admitted,
                                 std::span<Locality const> localities) {
  bool const is_on_gpu = std::ranges::any_of(
      admitted.devices, [](auto const& device) { return device && device->find("cuda") != std::string::npos; });
  if (wish && wish->is_automatic() && wish->between() && is_on_gpu)
    return {{std::nullopt}, "a tensor is on a GPU, and codes between groups are for memory of the host"};
  return model::alternatives(wish, admitted.dtype, localities);
}

Planner::Question question_about(api::Group const& group, Order const& order, Admitted const& admitted,
                                 std::optional<Compression> const& sent) {
  Planner::Question question{group.name, group.epoch, model::wish_for(order.wish, sent), admitted.elements,
                             element_bytes(admitted.dtype)};
  auto const bytes = question.elements * question.element_bytes;
  question.wish.without_wider_sums =
      admitted.contributions == 0 && model::is_large_average(order.wish.op, order.reduce, admitted.dtype, bytes);
  if (sent && !sent->between) {
    planning::Vector const vector{admitted.parts.front().sizes, admitted.dtype};
    question.elements = vector.priced_elements(sent, order.wish.op, static_cast<std::uint32_t>(group.members.size()));
    question.element_bytes = vector.priced_element_bytes(sent);
  }
  question.on_gpus = lies_on_gpus(admitted);
  question.wish.uneven = admitted.uneven;
  return question;
}

}  // namespace chorus::coordinator
