// A run in checked form, as the coordinator or a local caller asked for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/compression.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/core/reduce_op.hpp"
#include "collectives/plan/sizes/sizes.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/collectives/timeout.hpp"
#include "http/json/problem.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

class FusedList;

// What the caller admitted: a tensor that differs is refused. For ranks without a tensor only the dtype counts.
struct Admitted {
  std::uint64_t version = 0;
  Dtype dtype = Dtype::f32;
};

// Destination of a result: the version after `version` (0: there is none yet); empty: replaces any version.
struct ResultPlace {
  std::string tensor;
  tensors::Shape shape;
  std::optional<std::uint64_t> version;
};

struct RunOrder {
  std::uint64_t run = 0;
  std::string group;
  std::uint32_t epoch = 0;
  std::uint64_t token = 0;
  plan::Spec spec;
  plan::Rank rank = 0;
  std::vector<engine::Peer> members;       // in rank order
  std::string tensor;                      // "" for a barrier, and with `fused`
  std::shared_ptr<FusedList const> fused;  // for a call with a list of tensors
  std::size_t portion = 0;                 // number in the list
  std::optional<Admitted> admitted;
  plan::Sizes sizes;
  std::optional<ResultPlace> result;            // empty: the next version of the tensor, with its shape
  std::uint32_t parts = 0;                      // number of tensors named tensor/0 and so on; 0: one tensor
  std::string local_algorithm = "centralized";  // among the parts
  bool any_order = false;                       // parts may be added in any order; false: in their own
  std::uint64_t contributions = 0;              // number of parts of all workers together, for avg
  ReduceOp reduce = ReduceOp::sum;
  std::optional<Compression> compression;  // codes travel
  bool error_feedback = false;             // with compression: see tensors::Residuals
  bool digests = false;
  std::string trace_id;  // of the trace that the run belongs to, or ""
  api::Schedule schedule;
  std::chrono::steady_clock::time_point deadline;

  // True if this worker brings several tensors as one.
  [[nodiscard]] bool brings_several() const { return parts > 0 || fused; }
};

// Problems: invalid_field for impossible values; epoch_fenced for a request to another worker or incarnation.
[[nodiscard]] http::Checked<RunOrder> to_order(api::RunRequest const& request, Identity const& self,
                                               std::chrono::steady_clock::time_point now);

// Checks of fields that both kinds of orders have.
[[nodiscard]] http::Checked<ReduceOp> check_reduce(std::string const& reduce);
// Returns the format of the codes that the run sends; nothing if it sends elements.
[[nodiscard]] std::optional<WireFormat> format_sent(RunOrder const& order);
[[nodiscard]] http::Checked<std::optional<CompressionWish>> check_compression(
    std::optional<api::Compression> const& compression);
[[nodiscard]] http::Checked<std::chrono::milliseconds> check_timeout(std::uint64_t timeout_ms);
[[nodiscard]] std::optional<http::Problem> check_schedule(api::Schedule const& schedule);
// Of an average whose divisor is not the number of ranks.
[[nodiscard]] std::optional<http::Problem> check_contributions(std::uint64_t contributions);
// True if the algorithm adds the parts in their order, each element in one place.
[[nodiscard]] bool keeps_order(std::string const& local_algorithm);
// 16 hexadecimal digits.
[[nodiscard]] http::Checked<std::uint64_t> check_hex(std::string pointer, std::string const& text);

}  // namespace chorus::service
