// A user's request, checked as far as possible without asking a worker.
#pragma once

#include "collectives/core/compression.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/model/choice/compressions.hpp"
#include "collectives/model/choice/select.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "server/coordinator/admission/admission.hpp"

namespace chorus::coordinator {

// Allows [A-Za-z0-9._~/-]{1,255} without empty, "." or ".." parts.
[[nodiscard]] bool is_tensor_name(std::string_view name);

struct Order {
  ReduceOp reduce = ReduceOp::sum;
  model::Wish wish;
  std::optional<CompressionWish> compression;
};

// Problems: invalid_field with pointers and the possible values.
[[nodiscard]] http::Checked<Order> check_order(api::CollectiveRequest const& request);

// The question whose answers admit the tensors of a checked request.
[[nodiscard]] AdmissionQuestion admission_question(api::CollectiveRequest const& request, Order const& order);

// Checks the part that depends on the group. Problems: epoch_fenced, invalid_field for a root that is not a rank.
[[nodiscard]] std::optional<http::Problem> check_order_for(api::CollectiveRequest const& request, Order const& order,
                                                           api::Group const& group);

// Returns the tensors that the collective writes, as keys of the lock table.
[[nodiscard]] std::vector<std::string> lock_keys(api::Group const& group, api::CollectiveRequest const& request);

// The texts of a wish, also used by dry runs. Problems at /op, /algorithm, /root, /arity and /algorithm_shape.
struct WishText {
  std::string const& op;
  std::string const& algorithm;
  std::optional<std::uint32_t> root, arity;
  std::optional<std::vector<std::uint32_t>> const& shape;
  bool reproducible = false;
  std::optional<CompressionWish> compression;  // check_compression() is ok
};
[[nodiscard]] http::Checked<model::Wish> check_wish(WishText const& text);

// Checks the compression against the operation, the reduction and the algorithm. Problems at /compression.
[[nodiscard]] http::Checked<std::optional<CompressionWish>> check_compression(
    std::optional<api::Compression> const& compression, std::string const& op, ReduceOp reduce,
    std::string const& algorithm);
// Problem at /compression if the dtype has no codes of a format that is asked for.
[[nodiscard]] std::optional<http::Problem> check_format(std::optional<CompressionWish> const& compression, Dtype dtype);
[[nodiscard]] std::optional<http::Problem> check_root(std::optional<std::uint32_t> root, std::size_t ranks);
// Problem at /algorithm_shape if the wish has a shape that its algorithm does not support for so many ranks.
[[nodiscard]] std::optional<http::Problem> check_shape(model::Wish const& wish, std::size_t ranks);

}  // namespace chorus::coordinator
