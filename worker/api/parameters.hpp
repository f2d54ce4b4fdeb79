// Parameters of a parameter server in a C++ program: pulled and pushed in parallel at the workers that own their
// shards, repeated when one of them is lost. See docs/guides/parameters.md.
//
//   auto parameters = chorus::Parameters::connect({.coordinator = "http://127.0.0.1:7070", .client = "trainer-0",
//   .incarnation = started}); auto weights = parameters->open("weights", deadline); std::vector<float> w = ..., g =
//   ...; auto version = weights->pull(w, {.deadline = deadline}); auto pushed = weights->push(g, {.deadline =
//   deadline});
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "http/tls/files.hpp"
#include "worker/api/element.hpp"

namespace chorus {

enum class ParametersErrc {
  bad_argument = 1,   // an option, a dtype or a length that cannot be; nothing was sent
  unknown_parameter,  // the coordinator knows no parameter of that name
  lost,               // every worker that had a shard is gone
  refused,            // the detail is the problem that the owner answered; of a push of rows also rows_exhausted, which
                      // shards that have room have applied: the next push of this parameter is to be the same
  deadline_exceeded,  // of a push: it may have been applied, and the next push of this parameter is to be the same
};
[[nodiscard]] std::error_category const& parameters_category();
[[nodiscard]] inline std::error_code make_error_code(ParametersErrc e) {
  return {static_cast<int>(e), parameters_category()};
}

struct ParametersOptions {
  std::string coordinator;  // URL, or several with commas
  std::string client;       // [A-Za-z0-9._-]{1,64}: one name per program that pushes
  // Higher than that of any program that had the name before, such as the time of its start. Not 0.
  std::uint64_t incarnation = 0;
  std::string token_file;  // with a token of the role submit, where the service asks for one
  http::TlsFiles tls;      // for https URLs
};

class Parameters;

struct PullOptions {
  std::optional<std::uint64_t> min_version;  // wait for it
  std::optional<std::uint64_t> clock;        // wait for what a reader at this clock is to see
  // max: in 30 seconds
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  // Receive nothing if nothing has changed since this handle's last pull, if that was into the same memory: the caller
  // knows that the values still lie there. pull_rows() ignores it.
  bool if_changed = false;
};
struct PushOptions {
  std::optional<std::uint64_t> clock;  // of this push, where clocks count
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Gradients in fewer bytes: what is lost is added to the next gradient of the same handle.
// docs/reference/gradient_compression.md
struct GradientCompression {
  enum class Kind : std::uint8_t { f16, bf16, top_k, two_bit, int8 };
  Kind kind = Kind::f16;
  double fraction = 0.01;  // top_k: of the elements that are sent, in (0, 1]
  float threshold = 0.5F;  // two_bit: the one magnitude that is sent
};

// One parameter. Functions from any thread, pushes of one handle from one thread at a time. The Parameters outlives it.
class Parameter {
 public:
  struct Pulled {
    std::uint64_t version = 0;
    bool unchanged = false;  // with if_changed: nothing was received
  };
  struct Pushed {
    std::uint64_t version = 0;
    bool duplicate = false;  // a repetition of what had been applied
  };

  [[nodiscard]] std::string const& name() const;
  [[nodiscard]] Dtype dtype() const;
  [[nodiscard]] std::vector<std::uint64_t> const& shape() const;
  [[nodiscard]] std::uint64_t elements() const;

  // `into` has all elements, of the parameter's dtype.
  [[nodiscard]] Result<Pulled> pull(TensorView into, PullOptions options = {});
  // The same in the background: pulls for the next step while this one computes. `into` and the handle stay until
  // the future is ready.
  [[nodiscard]] std::future<Result<Pulled>> prefetch(TensorView into, PullOptions options = {});

  // Applied exactly once, whatever is repeated on the way. All elements, of the parameter's dtype or, where that is f16
  // or bf16, of f32.
  [[nodiscard]] Result<Pushed> push(ConstTensorView gradient, PushOptions options = {});
  // In one round trip; `into` then has the values with this push, and in rounds those after its round.
  [[nodiscard]] Result<Pushed> push_pull(ConstTensorView gradient, TensorView into, PushOptions options = {});
  [[nodiscard]] Result<Pushed> put(ConstTensorView values, PushOptions options = {});

  // From now on push() and push_pull() send gradients, of f32, compressed, and keep what is lost, one float per
  // element. A push that ended with deadline_exceeded is repeated as it was sent, whatever gradient is given then.
  // Errors: bad_argument; also for parameters that are not of f32, f16 or bf16.
  [[nodiscard]] Result<void> compress(GradientCompression compression);
  // What has not been sent yet, per element; empty unless compress() was called. To be kept with the program's own
  // checkpoint, and restored.
  [[nodiscard]] std::span<float> residual();

  // Rows of the first dimension, by ascending numbers; repeated rows of a push are summed.
  [[nodiscard]] Result<Pulled> pull_rows(std::span<std::uint64_t const> rows, TensorView into,
                                         PullOptions options = {});
  [[nodiscard]] Result<Pushed> push_rows(std::span<std::uint64_t const> rows, ConstTensorView gradient,
                                         PushOptions options = {});

  Parameter(Parameter&&) noexcept;
  Parameter& operator=(Parameter&&) noexcept;
  ~Parameter();

 private:
  friend class Parameters;
  struct State;
  explicit Parameter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Connections to a coordinator and to the workers that own shards, on a thread of its own. From any thread.
class Parameters {
 public:
  // Does not wait for the coordinator. Errors: bad_argument.
  [[nodiscard]] static Result<Parameters> connect(ParametersOptions options);
  ~Parameters();  // calls that are under way end first
  Parameters(Parameters&&) noexcept;
  Parameters& operator=(Parameters&&) noexcept;

  // A parameter that exists. If it is deleted and made anew later, calls of this handle fail with `unavailable`: open
  // the new one. A client that has pushed before under the same name and incarnation goes on with `next_sequence`.
  // Waits for a coordinator that leads. Errors: unknown_parameter, lost, deadline_exceeded.
  [[nodiscard]] Result<Parameter> open(std::string const& name, std::chrono::steady_clock::time_point deadline,
                                       std::uint64_t next_sequence = 0);

  class Impl;

 private:
  friend class Parameter;
  explicit Parameters(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace chorus

template <>
struct std::is_error_code_enum<chorus::ParametersErrc> : std::true_type {};
