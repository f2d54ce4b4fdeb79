// What requests about parameters have in common: who is asked, until when, which bytes they bring.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "http/message.hpp"
#include "worker/parameters/serving/push_fields.hpp"
#include "worker/service/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// The {name} of a route: 400 bad_request unless it is a valid name.
[[nodiscard]] http::Checked<std::string> parameter_name(http::Request const& request);

// ?timeout_ms=, 30 seconds unless given, at most ten minutes. Problem bad_request.
[[nodiscard]] http::Checked<http::TimePoint> deadline_of(http::Request const& request, http::TimePoint now);

// Which elements a body of a push has, and of which dtype the parameter is.
struct PushTarget {
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 0;  // 0: rows cannot be pushed
};

// The whole push: header fields, and the body straight into a block; a compressed one (Chorus-Compression) becomes f32.
// Problems: bad_request, length_required, length_mismatch, unsupported_media_type, unsupported, unavailable without
// memory, and those of the body.
class PushReader {
 public:
  PushReader(tensors::Pool& pool, Helper& helper) : pool_(pool), helper_(helper) {}
  boost::asio::awaitable<http::Checked<parameters::Push>> read(http::Request const& request, http::Body& body,
                                                               parameters::PushKind kind, PushTarget target);
  // A block with exactly `bytes` of body. Problems: length_required, length_mismatch, unavailable.
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> read_block(http::Body& body,
                                                                                    std::uint64_t bytes);

 private:
  boost::asio::awaitable<http::Checked<parameters::Push>> read_compressed(parameters::Push push, http::Body& body,
                                                                          std::string name, PushTarget target);
  tensors::Pool& pool_;
  Helper& helper_;
};

// Before a body of exactly so many bytes is read piece by piece. Problems: unsupported_media_type, length_required,
// length_mismatch.
[[nodiscard]] std::optional<http::Problem> check_body(http::Request const& request, http::Body const& body,
                                                      std::uint64_t bytes);

// The conditions of a pull: ?min_version=, Chorus-Clock.
struct PullConditions {
  std::optional<std::uint64_t> min_version;
  std::optional<std::uint64_t> clock;
};
[[nodiscard]] http::Checked<PullConditions> pull_conditions(http::Request const& request);

}  // namespace chorus::service
