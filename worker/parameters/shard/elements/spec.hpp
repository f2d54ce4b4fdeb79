// The description of a shard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "http/api/parameters/parameters.hpp"
#include "worker/parameters/shard/pushes/rows.hpp"

namespace chorus::parameters {

enum class NonFinite : std::uint8_t { accept, reject, zero };

// The description of a shard, which never changes.
struct ShardSpec {
  std::string parameter;
  std::string uid;  // of the parameter: see api::Parameter; empty: not known
  std::uint32_t index = 0;
  Dtype dtype = Dtype::f32;
  std::uint64_t begin = 0, end = 0;  // elements of the parameter
  std::vector<std::uint64_t> shape;  // of the parameter
  std::uint64_t whole = 0;           // elements of the parameter
  std::uint64_t row_elements = 0;    // 0: the shard has no whole rows, so that rows cannot be selected
  std::int64_t staleness = -1;
  bool averages = false;  // in rounds: use the mean of the gradients, not their sum
  NonFinite nonfinite = NonFinite::accept;
  api::OptimizerSettings optimizer;
  api::InitializerSettings initializer;
  std::uint64_t initial_row_elements = 1;  // of a row of the initializer, also if shards cut rows
  std::vector<std::string> clients;        // at the beginning
  std::optional<std::uint64_t> lazy_rows;  // lazy rows: the most that may exist
  bool is_logged = false;                  // the owner keeps a push log
  bool on_gpu = false;

  [[nodiscard]] std::uint64_t elements() const { return end - begin; }
  [[nodiscard]] bool in_rounds() const { return staleness == 0; }
  [[nodiscard]] bool is_whole() const { return elements() == whole; }
  [[nodiscard]] std::uint64_t bytes() const { return elements() * element_bytes(dtype); }
  [[nodiscard]] RowRange rows() const {
    return row_elements == 0 ? RowRange{} : RowRange{begin / row_elements, end / row_elements};
  }
  [[nodiscard]] std::uint64_t row_bytes() const { return row_elements * element_bytes(dtype); }
  // Problems: invalid_field for an assignment that no coordinator sends.
  [[nodiscard]] static http::Checked<ShardSpec> from(api::ShardAssignment const& assignment);
};

}  // namespace chorus::parameters
