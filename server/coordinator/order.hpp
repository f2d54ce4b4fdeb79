// What a user asked for, checked as far as possible without asking a worker.
#pragma once

#include "collectives/core/reduce_op.hpp"
#include "collectives/model/select.hpp"
#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"

namespace chorus::coordinator {

// [A-Za-z0-9._~/-]{1,255} without empty, "." or ".." parts.
[[nodiscard]] bool is_tensor_name(std::string_view name);

struct Order {
  ReduceOp reduce = ReduceOp::sum;
  model::Wish wish;
};

// Problems: invalid_field with pointers, saying what would be possible.
[[nodiscard]] http::Checked<Order> check_order(api::CollectiveRequest const& request);

// The part of it that depends on the group. Problems: epoch_fenced, invalid_field for a root that is no rank.
[[nodiscard]] std::optional<http::Problem> check_order_for(api::CollectiveRequest const& request, Order const& order,
                                                           api::Group const& group);

// What the collective writes, as keys of the lock table.
[[nodiscard]] std::vector<std::string> lock_keys(api::Group const& group, api::CollectiveRequest const& request);

// Shared with dry runs. Problems at /op, /algorithm, /root, /arity and /algorithm_shape.
struct WishText {
  std::string const& op;
  std::string const& algorithm;
  std::optional<std::uint32_t> root, arity;
  std::optional<std::vector<std::uint32_t>> const& shape;
  bool reproducible = false;
};
[[nodiscard]] http::Checked<model::Wish> check_wish(WishText const& text);
[[nodiscard]] std::optional<http::Problem> check_root(std::optional<std::uint32_t> root, std::size_t ranks);
// Problem at /algorithm_shape if the wish has one and its algorithm does not take it for so many ranks.
[[nodiscard]] std::optional<http::Problem> check_shape(model::Wish const& wish, std::size_t ranks);

}  // namespace chorus::coordinator
