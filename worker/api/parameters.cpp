#include "worker/api/parameters.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <cstring>
#include <thread>

#include "base/runtime/environment.hpp"
#include "base/runtime/pause.hpp"
#include "http/auth/credentials.hpp"
#include "worker/api/gradient_compressor.hpp"
#include "worker/parameters/serving/access/access.hpp"
#include "worker/parameters/serving/access/push_fields.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus {
namespace {

namespace asio = boost::asio;
using parameters::Access;
using std::chrono::steady_clock;
using TimePoint = steady_clock::time_point;

class ParametersCategory final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "parameters"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<ParametersErrc>(code)) {
      case ParametersErrc::bad_argument:
        return "bad argument";
      case ParametersErrc::unknown_parameter:
        return "unknown parameter";
      case ParametersErrc::lost:
        return "the parameter is lost";
      case ParametersErrc::refused:
        return "refused";
      case ParametersErrc::deadline_exceeded:
        return "deadline exceeded";
    }
    return "unknown error";
  }
};

Error to_error(http::Problem const& problem) {
  using http::ProblemCode;
  auto const code = problem.code == ProblemCode::unknown_parameter   ? ParametersErrc::unknown_parameter
                    : problem.code == ProblemCode::parameter_lost    ? ParametersErrc::lost
                    : problem.code == ProblemCode::deadline_exceeded ? ParametersErrc::deadline_exceeded
                    : problem.code == ProblemCode::unavailable       ? ParametersErrc::deadline_exceeded
                                                                     : ParametersErrc::refused;
  return {code, std::string(http::kind(problem.code).name) + ": " + problem.detail};
}

TimePoint settled(TimePoint deadline) {
  constexpr std::chrono::seconds otherwise{30};
  return deadline == TimePoint::max() ? steady_clock::now() + otherwise : deadline;
}

}  // namespace

std::error_category const& parameters_category() {
  static ParametersCategory const category;
  return category;
}

class Parameters::Impl {
 public:
  Impl(ParametersOptions options, std::vector<std::string> coordinators)
      : client_{std::move(options.client), options.incarnation},
        credentials_(std::move(options.token_file), std::move(options.tls)),
        http_(control_.get_executor(), &credentials_),
        access_(control_.get_executor(), http_, http::MessageChecksums::automatic, coordinators.front(), true),
        stays_(asio::make_work_guard(control_)) {
    http_.take_turns(std::move(coordinators));
    thread_ = std::thread([this] { control_.run(); });
  }
  ~Impl() {
    asio::co_spawn(control_, access_.stop(), asio::use_future).get();
    stays_.reset();
    thread_.join();
  }
  Impl(Impl const&) = delete;
  Impl& operator=(Impl const&) = delete;

  [[nodiscard]] Status open() { return credentials_.open(); }

  template <class T>
  std::future<T> begin(asio::awaitable<T> work) {
    return asio::co_spawn(control_, std::move(work), asio::use_future);
  }

  // Asks until a coordinator answers, or the deadline.
  asio::awaitable<http::Checked<parameters::PlacementPtr>> find(std::string name, TimePoint deadline) {
    constexpr std::chrono::milliseconds usual_pause{200};
    for (;;) {
      // Not what is known of the name: the parameter may have been made anew.
      auto placed = co_await access_.directory().fetch(name, "", deadline);
      if (placed || placed.error().code != http::ProblemCode::unavailable) co_return placed;
      placed = co_await access_.placement(name, deadline);
      if (placed || placed.error().code != http::ProblemCode::unavailable) co_return placed;
      auto const wanted = std::chrono::seconds(placed.error().retry_after_s.value_or(0));
      auto const next = steady_clock::now() + std::max<std::chrono::milliseconds>(wanted, usual_pause);
      if (next >= deadline) co_return placed;
      co_await http::pause_until(next);
    }
  }

  [[nodiscard]] Access& access() { return access_; }
  [[nodiscard]] parameters::Client const& client() const { return client_; }

 private:
  parameters::Client const client_;
  asio::io_context control_{1};
  http::Credentials credentials_;
  http::Client http_;
  Access access_;
  asio::executor_work_guard<asio::io_context::executor_type> stays_;
  std::thread thread_;
};

// What a handle and its calls on the control thread share.
struct Parameter::State {
  // Coroutines do not own it: what ended its thread would run there.
  using Ptr = State*;

  std::shared_ptr<Parameters::Impl> owner;
  parameters::PlacementPtr placement;  // of the time of open(): what never changes of it
  std::uint64_t next_sequence = 0;
  // Of the last pull, on the control thread.
  std::vector<std::string> tags;
  std::byte const* pulled_into = nullptr;
  GradientCompressor compressor;

  [[nodiscard]] std::optional<Error> misfit(ConstTensorView view, std::uint64_t elements, bool may_be_f32) const {
    auto const is_half = placement->dtype == Dtype::f16 || placement->dtype == Dtype::bf16;
    auto const fits = view.dtype == placement->dtype || (may_be_f32 && is_half && view.dtype == Dtype::f32);
    if (fits && view.bytes.size() == elements * element_bytes(view.dtype)) return std::nullopt;
    return Error(ParametersErrc::bad_argument, placement->parameter.name + ": " + std::to_string(view.elements()) +
                                                   " elements of " + std::string(chorus::name(view.dtype)) +
                                                   " were given, expected " + std::to_string(elements) + " of " +
                                                   std::string(chorus::name(placement->dtype)));
  }

  [[nodiscard]] parameters::Push make_push(parameters::PushKind kind, ConstTensorView view,
                                           PushOptions const& options) {
    parameters::Push push;
    push.kind = kind;
    push.client = owner->client();
    push.sequence = next_sequence;
    push.clock = options.clock;
    push.dtype = view.dtype;
    // The caller's own memory: nobody writes there, and the call outlasts all that reads it.
    push.data = std::make_shared<tensors::Block const>(const_cast<std::byte*>(view.bytes.data()), view.bytes.size());
    return push;
  }

  [[nodiscard]] parameters::RowRange rows() const {
    return {0, placement->elements / std::max<std::uint64_t>(placement->row_elements, 1)};
  }

  // A push that ended. One that may have been applied keeps its number, and is to be repeated.
  [[nodiscard]] Result<Pushed> settle(Result<Access::Outcome> const& outcome) {
    if (!outcome) return outcome.error();
    ++next_sequence;
    compressor.settle();
    return Pushed{outcome->version, outcome->duplicate};
  }

  // Owners of parts do not know the norm of the whole.
  [[nodiscard]] bool wants_norm() const {
    return placement->parameter.optimizer.clip_norm.has_value() && placement->owners.size() > 1;
  }
  [[nodiscard]] bool zeroes_nonfinite() const { return placement->parameter.nonfinite == "zero"; }
  static asio::awaitable<Result<Access::Outcome>> push_encoded(Ptr state, parameters::Push push, TensorView answer,
                                                               TimePoint until) {
    auto const deadline = settled(until);
    auto const now = co_await place(state, deadline);
    state->pulled_into = nullptr;
    parameters::Room const room{nullptr, answer.bytes};
    auto const outcome = co_await state->owner->access().push_compressed(now, std::move(push),
                                                                         state->compressor.encoded(), room, deadline);
    if (!outcome) co_return to_error(outcome.error());
    co_return *outcome;
  }

  [[nodiscard]] Result<Pushed> push_gradient(ConstTensorView gradient, TensorView answer, PushOptions const& options) {
    auto push = make_push(parameters::PushKind::gradient, gradient, options);
    if (!compressor.is_on()) {
      if (wants_norm()) push.norm = parameters::norm_of(push, placement->row_elements, zeroes_nonfinite());
      return settle(owner->begin(State::push(this, std::move(push), answer, options.deadline)).get());
    }
    if (gradient.dtype != Dtype::f32)
      return Error(ParametersErrc::bad_argument, "a gradient that is compressed is given in f32");
    auto const* const floats = reinterpret_cast<float const*>(gradient.bytes.data());
    if (auto wrong = compressor.encode({floats, gradient.bytes.size() / sizeof(float)}, *placement))
      return std::move(*wrong);
    push.dtype = Dtype::f32;
    push.data = nullptr;
    if (wants_norm()) {
      auto const norm = compressor.norm_of_encoded(*placement);
      if (!norm) return norm.error();
      push.norm = *norm;
    }
    auto const outcome = owner->begin(push_encoded(this, std::move(push), answer, options.deadline)).get();
    if (!outcome && outcome.error().code == ParametersErrc::refused) compressor.take_back(*placement);
    return settle(outcome);
  }

  // Where it stands now, as far as anybody knows. Owners refuse a placement of a parameter that was deleted.
  static asio::awaitable<parameters::PlacementPtr> place(Ptr state, TimePoint deadline) {
    auto const placed = co_await state->owner->access().placement(state->placement->parameter.name, deadline);
    if (placed && (*placed)->is_of_same(*state->placement)) co_return *placed;
    co_return state->placement;
  }

  static asio::awaitable<Result<Pulled>> pull(Ptr state, TensorView into, PullOptions options) {
    auto const deadline = settled(options.deadline);
    auto const placement = co_await place(state, deadline);
    Access::ReadConstraints constraints{options.min_version, options.clock, {}};
    if (options.if_changed && state->pulled_into == into.bytes.data()) constraints.tags = state->tags;
    state->pulled_into = nullptr;
    http::ByteRange const range{0, into.bytes.size()};
    parameters::Room const room{nullptr, into.bytes};
    auto const outcome = co_await state->owner->access().pull(placement, constraints, range, room, deadline);
    if (!outcome) co_return to_error(outcome.error());
    state->tags = outcome->tags;
    state->pulled_into = into.bytes.data();
    co_return Pulled{outcome->version, outcome->unchanged};
  }

  static asio::awaitable<Result<Access::Outcome>> push(Ptr state, parameters::Push push, TensorView answer,
                                                       TimePoint until) {
    auto const deadline = settled(until);
    auto const placement = co_await place(state, deadline);
    state->pulled_into = nullptr;
    parameters::Room const room{nullptr, answer.bytes};
    auto const outcome = co_await state->owner->access().push(placement, std::move(push), room, deadline);
    if (!outcome) co_return to_error(outcome.error());
    co_return *outcome;
  }

  static asio::awaitable<Result<Access::Outcome>> push_rows(Ptr state, parameters::Push push, TimePoint until) {
    auto const deadline = settled(until);
    auto const placement = co_await place(state, deadline);
    auto const outcome = co_await state->owner->access().push_rows(placement, std::move(push), deadline);
    if (!outcome) co_return to_error(outcome.error());
    co_return *outcome;
  }

  static asio::awaitable<Result<Pulled>> pull_rows(Ptr state, std::span<std::uint64_t const> rows, TensorView into,
                                                   PullOptions options) {
    auto const deadline = settled(options.deadline);
    auto const placement = co_await place(state, deadline);
    Access::ReadConstraints const constraints{options.min_version, options.clock, {}};
    parameters::Room const room{nullptr, into.bytes};
    auto const outcome =
        co_await state->owner->access().pull_rows(placement, constraints, nullptr, rows, room, deadline);
    if (!outcome) co_return to_error(outcome.error());
    co_return Pulled{outcome->version, false};
  }
};

Result<Parameters> Parameters::connect(ParametersOptions options) {
  if (!parameters::is_client_name(options.client))
    return Error(ParametersErrc::bad_argument,
                 "client '" + options.client + "' is not 1 to 64 letters, digits and ._-");
  auto coordinators = http::parse_services(options.coordinator);
  if (!coordinators) return Error(ParametersErrc::bad_argument, "coordinator: " + coordinators.error().detail);
  if (options.incarnation == 0)
    return Error(ParametersErrc::bad_argument,
                 "incarnation is 0: the pushes of a program that starts again would be taken for repetitions");
  http::ignore_signals_of_writes();
  auto impl = std::make_shared<Impl>(std::move(options), std::move(*coordinators));
  if (auto const opened = impl->open(); !opened) return Error(ParametersErrc::bad_argument, opened.error().detail);
  return Parameters(std::move(impl));
}

Parameters::Parameters(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Parameters::~Parameters() = default;
Parameters::Parameters(Parameters&&) noexcept = default;
Parameters& Parameters::operator=(Parameters&&) noexcept = default;

Result<Parameter> Parameters::open(std::string const& name, TimePoint deadline, std::uint64_t next_sequence) {
  auto placed = impl_->begin(impl_->find(name, settled(deadline))).get();
  if (!placed) return to_error(placed.error());
  auto state = std::make_shared<Parameter::State>();
  state->owner = impl_;
  state->placement = std::move(*placed);
  state->next_sequence = next_sequence;
  return Parameter(std::move(state));
}

Parameter::Parameter(std::shared_ptr<State> state) : state_(std::move(state)) {}
Parameter::Parameter(Parameter&&) noexcept = default;
Parameter& Parameter::operator=(Parameter&&) noexcept = default;
Parameter::~Parameter() = default;

std::string const& Parameter::name() const { return state_->placement->parameter.name; }
Dtype Parameter::dtype() const { return state_->placement->dtype; }
std::vector<std::uint64_t> const& Parameter::shape() const { return state_->placement->parameter.shape; }
std::uint64_t Parameter::elements() const { return state_->placement->elements; }

std::future<Result<Parameter::Pulled>> Parameter::prefetch(TensorView into, PullOptions options) {
  if (auto wrong = state_->misfit(into, elements(), false)) {
    std::promise<Result<Pulled>> refused;
    refused.set_value(std::move(*wrong));
    return refused.get_future();
  }
  return state_->owner->begin(State::pull(state_.get(), into, options));
}

Result<Parameter::Pulled> Parameter::pull(TensorView into, PullOptions options) {
  return prefetch(into, options).get();
}

Result<Parameter::Pushed> Parameter::push(ConstTensorView gradient, PushOptions options) {
  if (auto wrong = state_->misfit(gradient, elements(), true)) return std::move(*wrong);
  return state_->push_gradient(gradient, TensorView(), options);
}

Result<void> Parameter::compress(GradientCompression wanted) {
  auto const dtype = state_->placement->dtype;
  if (dtype != Dtype::f32 && dtype != Dtype::f16 && dtype != Dtype::bf16)
    return Error(ParametersErrc::bad_argument,
                 "gradients of " + std::string(chorus::name(dtype)) + " are not compressed, only f32, f16 and bf16");
  return state_->compressor.start(wanted, elements());
}

std::span<float> Parameter::residual() { return state_->compressor.residual(); }

Result<Parameter::Pushed> Parameter::push_pull(ConstTensorView gradient, TensorView into, PushOptions options) {
  if (auto wrong = state_->misfit(gradient, elements(), true)) return std::move(*wrong);
  if (auto wrong = state_->misfit(into, elements(), false)) return std::move(*wrong);
  return state_->push_gradient(gradient, into, options);
}

Result<Parameter::Pushed> Parameter::put(ConstTensorView values, PushOptions options) {
  if (auto wrong = state_->misfit(values, elements(), false)) return std::move(*wrong);
  auto push = state_->make_push(parameters::PushKind::value, values, options);
  return state_->settle(
      state_->owner->begin(State::push(state_.get(), std::move(push), TensorView(), options.deadline)).get());
}

Result<Parameter::Pulled> Parameter::pull_rows(std::span<std::uint64_t const> rows, TensorView into,
                                               PullOptions options) {
  auto const width = state_->placement->row_elements;
  if (auto wrong = state_->misfit(into, rows.size() * width, false)) return std::move(*wrong);
  auto const checked = parameters::check_rows(std::as_bytes(rows), rows.size(), 0, state_->rows());
  if (!checked) return Error(ParametersErrc::bad_argument, checked.error().detail);
  return state_->owner->begin(State::pull_rows(state_.get(), rows, into, options)).get();
}

Result<Parameter::Pushed> Parameter::push_rows(std::span<std::uint64_t const> rows, ConstTensorView gradient,
                                               PushOptions options) {
  auto const width = state_->placement->row_elements;
  if (auto wrong = state_->misfit(gradient, rows.size() * width, true)) return std::move(*wrong);
  auto const checked = parameters::check_rows(std::as_bytes(rows), rows.size(), 0, state_->rows());
  if (!checked) return Error(ParametersErrc::bad_argument, checked.error().detail);
  std::vector<std::byte> body(rows.size_bytes() + gradient.bytes.size());
  if (!rows.empty()) {
    std::memcpy(body.data(), rows.data(), rows.size_bytes());
    std::memcpy(body.data() + rows.size_bytes(), gradient.bytes.data(), gradient.bytes.size());
  }
  auto push = state_->make_push(parameters::PushKind::rows, {body, gradient.dtype}, options);
  push.rows = rows.size();
  if (state_->wants_norm()) push.norm = parameters::norm_of(push, width, state_->zeroes_nonfinite());
  return state_->settle(state_->owner->begin(State::push_rows(state_.get(), std::move(push), options.deadline)).get());
}

}  // namespace chorus
