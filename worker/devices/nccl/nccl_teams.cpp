#include "worker/devices/nccl/nccl_teams.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace chorus::devices {
namespace {

using std::chrono::steady_clock;

std::optional<nccl::DataType> type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return nccl::DataType::f64;
    case Dtype::f32:
      return nccl::DataType::f32;
    case Dtype::i64:
      return nccl::DataType::i64;
    case Dtype::i32:
      return nccl::DataType::i32;
    case Dtype::i8:
      return nccl::DataType::i8;
    case Dtype::u64:
      return nccl::DataType::u64;
    case Dtype::u32:
      return nccl::DataType::u32;
    case Dtype::u8:
      return nccl::DataType::u8;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::i16:
    case Dtype::u16:
    case Dtype::int8_block:
    case Dtype::fp8_block:
      break;
  }
  return std::nullopt;
}

std::optional<nccl::RedOp> op_of(ReduceOp op, Dtype dtype) {
  bool const is_float = dtype == Dtype::f32 || dtype == Dtype::f64;
  switch (op) {
    case ReduceOp::sum:
      return nccl::RedOp::sum;
    case ReduceOp::prod:
      return nccl::RedOp::prod;
    case ReduceOp::min:
      return is_float ? std::nullopt : std::optional(nccl::RedOp::min);
    case ReduceOp::max:
      return is_float ? std::nullopt : std::optional(nccl::RedOp::max);
    case ReduceOp::avg:
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      break;
  }
  return std::nullopt;
}

bool comes_before(GpuUnit const* one, GpuUnit const* other) {
  return one->gpu().info().index < other->gpu().info().index;
}

std::vector<int> numbers_of(std::span<GpuUnit* const> units) {
  std::vector<int> numbers;
  for (auto const* const unit : units) numbers.push_back(static_cast<int>(unit->gpu().info().index));
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<Placed> in_order(std::span<Placed const> places) {
  std::vector<Placed> ordered(places.begin(), places.end());
  std::ranges::sort(ordered, comes_before, &Placed::unit);
  return ordered;
}

std::vector<GpuUnit*> units_of(std::span<Placed const> places) {
  std::vector<GpuUnit*> units;
  for (auto const& place : places) units.push_back(place.unit);
  return units;
}

std::size_t rank_of(std::span<Placed const> places, GpuUnit const* unit) {
  return static_cast<std::size_t>(std::ranges::find(places, unit, &Placed::unit) - places.begin());
}

}  // namespace

struct NcclTeams::Part {
  GpuUnit* unit = nullptr;
  nccl::Communicator communicator = nullptr;
  std::unique_ptr<GpuSession> session;
  void* queue = nullptr;
  Mark mark;
  bool is_done = false;

  [[nodiscard]] Status open();
  [[nodiscard]] Error seen(Error error) const {
    unit->saw(error);
    return error;
  }
  [[nodiscard]] static std::string names_of(std::span<Part const> parts);
};

NcclTeams::NcclTeams(std::shared_ptr<NcclLibrary const> library, Tell tell, std::chrono::milliseconds patience)
    : library_(std::move(library)), tell_(std::move(tell)), patience_(patience) {}

NcclTeams::~NcclTeams() {
  {
    std::scoped_lock lock(mutex_);
    is_closed_ = true;
  }
  for (auto& maker : makers_) maker.join();
  for (auto const& team : teams_)
    for (auto* const communicator : team->communicators) static_cast<void>(library_->comm_destroy(communicator));
}

bool NcclTeams::has(ReduceOp op, Dtype dtype) { return type_of(dtype) && op_of(op, dtype); }

bool NcclTeams::is_making() const {
  return std::ranges::any_of(teams_, [](auto const& team) { return team->state == Team::State::making; });
}

// Runs on a thread of the team.
void NcclTeams::make(Team& team) {
  { std::scoped_lock last(working_); }  // waits for the running collective; no other begins while a team is being made
  std::vector<nccl::Communicator> made(team.devices.size());
  auto const status = library_->comm_init_all(made.data(), static_cast<int>(made.size()), team.devices.data());
  std::string names;
  for (auto const device : team.devices)
    names.append(names.empty() ? "" : ", ").append(device_name(static_cast<std::uint32_t>(device)));
  std::scoped_lock lock(mutex_);
  bool const is_wanted = !is_closed_ && !has_failed_;
  if (status == nccl::success && is_wanted) {
    team.communicators = std::move(made);
    team.state = Team::State::ready;
    tell_("NCCL sums and spreads tensors of one name on " + names, false);
  } else {
    team.state = Team::State::gone;
    if (status != nccl::success)
      tell_("NCCL is not used for " + names + ": ncclCommInitAll: " + library_->words(status, nullptr), true);
    else
      for (auto* const communicator : made) static_cast<void>(library_->comm_destroy(communicator));
  }
  changed_.notify_all();
}

bool NcclTeams::ready(std::span<GpuUnit* const> units) {
  auto const devices = numbers_of(units);
  std::scoped_lock lock(mutex_);
  if (has_failed_) return false;
  auto const known = std::ranges::find(teams_, devices, [](auto const& team) { return team->devices; });
  if (known != teams_.end()) return (*known)->state == Team::State::ready && !is_making();
  if (teams_.size() == teams_max) return false;
  auto& team = *teams_.emplace_back(std::make_unique<Team>());
  team.devices = devices;
  makers_.emplace_back([this, &team] { make(team); });
  return false;
}

bool NcclTeams::settled(steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return !is_making(); });
}

std::string NcclTeams::Part::names_of(std::span<Part const> parts) {
  std::string names;
  for (auto const& part : parts)
    names.append(names.empty() ? "" : ", ").append(device_name(part.unit->gpu().info().index));
  return names;
}

Error NcclTeams::error_of(std::span<Part const> parts, char const* what, nccl::Return status) const {
  return {GpuErrc::failed,
          Part::names_of(parts) + ": " + what + ": " + library_->words(status, parts.front().communicator)};
}

// Gets session and queue of each GPU. Errors of a driver are found here, before any call of NCCL.
Status NcclTeams::Part::open() {
  auto made = unit->session();
  if (!made) return seen(made.error());
  session = std::move(*made);
  auto const found = session->queue(Lane::compute);
  if (!found) return seen(found.error());
  queue = *found;
  return ok();
}

Status NcclTeams::enqueue(std::vector<Part>& parts, char const* what, Call const& call, Still still) const {
  if (auto const status = library_->group_start(); status != nccl::success)
    return error_of(parts, "ncclGroupStart", status);
  std::optional<Error> failure;
  for (std::size_t n = 0; n < parts.size() && !failure; ++n)
    if (auto const status = call(n, parts[n].communicator, parts[n].queue); status != nccl::success)
      failure = error_of({&parts[n], 1}, what, status);
  // Also after a failure: otherwise the next group would be inside this one.
  auto const ended = library_->group_end();
  still.unlock();
  if (failure) return *failure;
  if (ended != nccl::success) return error_of(parts, "ncclGroupEnd", ended);
  for (auto& part : parts) {
    auto const mark = part.session->mark(Lane::compute);
    if (!mark) return part.seen(mark.error());
    part.mark = *mark;
  }
  return ok();
}

// Waits for all parts at the same time, because each kernel waits for the others.
Status NcclTeams::wait(std::vector<Part>& parts, char const* what) const {
  auto const deadline = steady_clock::now() + patience_;
  for (;;) {
    bool are_done = true;
    for (auto& part : parts) {
      if (part.is_done) continue;
      auto const reached = part.session->reached(part.mark);
      if (!reached) return part.seen(reached.error());
      part.is_done = *reached;
      are_done = are_done && part.is_done;
      nccl::Return later = nccl::success;
      auto const asked = library_->comm_get_async_error(part.communicator, &later);
      auto const status = asked != nccl::success ? asked : later;
      if (status != nccl::success && status != nccl::in_progress) return error_of({&part, 1}, what, status);
    }
    if (are_done) return ok();
    if (steady_clock::now() >= deadline)
      return Error(GpuErrc::failed, Part::names_of(parts) + ": " + what + " took longer than " +
                                        std::to_string(patience_.count()) + " ms");
    std::this_thread::yield();
  }
}

// Aborts NCCL's work on the devices, so that their queues can end.
void NcclTeams::give_up(Team& team, Error const& why) {
  std::vector<nccl::Communicator> communicators;
  {
    std::scoped_lock lock(mutex_);
    has_failed_ = true;
    team.state = Team::State::gone;
    communicators = std::exchange(team.communicators, {});
  }
  for (auto* const communicator : communicators) static_cast<void>(library_->comm_abort(communicator));
  tell_("NCCL is not used any more: " + why.detail, true);
}

NcclTeams::Team* NcclTeams::team_of(std::vector<GpuUnit*> const& units) const {
  auto const devices = numbers_of(units);
  std::scoped_lock lock(mutex_);
  if (has_failed_ || is_making()) return nullptr;
  for (auto const& team : teams_)
    if (team->devices == devices && team->state == Team::State::ready) return team.get();
  return nullptr;
}

Status NcclTeams::together(std::vector<GpuUnit*> const& units, char const* what, std::uint64_t bytes,
                           Call const& call) {
  std::scoped_lock lock(working_);
  auto* const team = team_of(units);
  if (team == nullptr) return Error(GpuErrc::unavailable, "NCCL is not used now");
  std::vector<Part> parts(units.size());
  for (std::size_t n = 0; n < parts.size(); ++n) {
    parts[n].unit = units[n];
    parts[n].communicator = team->communicators[n];
    if (auto const opened = parts[n].open(); !opened) return opened;
  }
  auto still = units.front()->gpu().hold_still();
  if (!still) return Error(GpuErrc::unavailable, "the driver waits for a device");
  auto status = enqueue(parts, what, call, std::move(still));
  if (status) status = wait(parts, what);
  if (!status) {
    give_up(*team, status.error());
    // The error may say that another part's GPU is lost.
    for (auto& part : parts) part.unit->end(std::move(part.session), Error(GpuErrc::failed, status.error().detail));
    return status;
  }
  for (auto& part : parts) {
    auto use = part.session->use();
    use.nccl_bytes = bytes;
    part.unit->count(use);
    part.unit->give_back(std::move(part.session));
  }
  return ok();
}

Status NcclTeams::reduce(ReduceOp op, Dtype dtype, std::span<Placed const> sources, Placed result,
                         std::uint64_t elements) {
  auto const places = in_order(sources);
  auto const root = rank_of(places, result.unit);
  auto const type = static_cast<int>(type_of(dtype).value());
  auto const red_op = static_cast<int>(op_of(op, dtype).value());
  return together(units_of(places), "ncclReduce", elements * element_bytes(dtype),
                  [&](std::size_t n, nccl::Communicator communicator, void* queue) {
                    return library_->reduce(places[n].data, n == root ? result.data : nullptr, elements, type, red_op,
                                            static_cast<int>(root), communicator, queue);
                  });
}

Status NcclTeams::broadcast(Placed from, std::span<Placed const> to, std::uint64_t bytes) {
  auto const places = in_order(to);
  auto const root = static_cast<int>(rank_of(places, from.unit));
  return together(units_of(places), "ncclBroadcast", bytes,
                  [&](std::size_t n, nccl::Communicator communicator, void* queue) {
                    auto const* const source = places[n].unit == from.unit ? from.data : places[n].data;
                    return library_->broadcast(source, places[n].data, bytes, static_cast<int>(nccl::DataType::u8),
                                               root, communicator, queue);
                  });
}

}  // namespace chorus::devices
