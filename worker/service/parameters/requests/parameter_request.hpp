// Common parts of requests about parameters: name, deadline and body.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/message/message.hpp"
#include "worker/parameters/serving/access/push_fields.hpp"
#include "worker/parameters/shard/pushes/rows.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// The {name} of a route: 400 bad_request unless it is a valid name.
[[nodiscard]] http::Checked<std::string> parameter_name(http::Request const& request);

// ?timeout_ms=, 30 seconds unless given, at most ten minutes. Problem bad_request.
[[nodiscard]] http::Checked<http::TimePoint> deadline_of(http::Request const& request, http::TimePoint now);

// Number of elements in the body of a push, and dtype of the parameter.
struct PushTarget {
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 0;  // 0: rows cannot be pushed
};

// Reads a whole push: header fields, and the body straight into a block; a compressed body (Chorus-Compression) becomes
// f32. Problems: bad_request, length_required for a compressed one, length_mismatch, unsupported_media_type,
// unsupported, unavailable for lack of memory, and those of the body.
class PushReader {
 public:
  PushReader(tensors::Pool& pool, Helper& helper) : pool_(pool), helper_(helper) {}
  boost::asio::awaitable<http::Checked<parameters::Push>> read(http::Request const& request, http::Body& body,
                                                               parameters::PushKind kind, PushTarget target);
  // Returns the length of the rows of this push. Problem length_mismatch: that is more than `most`.
  [[nodiscard]] static http::Checked<std::uint64_t> bytes_of_rows(parameters::Push const& push, std::uint64_t most,
                                                                  PushTarget target);
  // The length of the body, or any if its head does not tell it.
  [[nodiscard]] static std::uint64_t most_bytes(http::Body const& body) {
    return body.length().value_or(std::uint64_t{1} << 62);
  }
  // parameters::check_rows; many rows are checked on another thread.
  using Rows = std::span<std::uint64_t const>;
  boost::asio::awaitable<http::Checked<Rows>> checked_rows(std::shared_ptr<tensors::Block const> block,
                                                           std::uint64_t count, std::uint64_t row_bytes,
                                                           parameters::RowRange range);
  // Reads the whole body of `bytes` bytes into a block. Problems: length_mismatch, unavailable, those of the body.
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> read_block(http::Body& body,
                                                                                    std::uint64_t bytes);

 private:
  boost::asio::awaitable<http::Checked<parameters::Push>> read_compressed(parameters::Push push, http::Body& body,
                                                                          std::string name, PushTarget target);
  tensors::Pool& pool_;
  Helper& helper_;
};

// Checks a body of exactly `bytes` bytes before it is read piece by piece. Problems: unsupported_media_type,
// length_required, length_mismatch.
[[nodiscard]] std::optional<http::Problem> check_body(http::Request const& request, http::Body const& body,
                                                      std::uint64_t bytes);

// The conditions of a pull: ?min_version=, Chorus-Clock.
struct PullConditions {
  std::optional<std::uint64_t> min_version;
  std::optional<std::uint64_t> clock;
};
[[nodiscard]] http::Checked<PullConditions> pull_conditions(http::Request const& request);

}  // namespace chorus::service
