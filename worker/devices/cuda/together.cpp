#include "worker/devices/cuda/together.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace chorus::devices {
namespace {

constexpr std::uint64_t alignment = 256;  // of slices, in elements or bytes

struct Slice {
  std::uint64_t begin = 0, size = 0;
};

// Returns the n-th of `count` slices.
Slice slice_of(std::uint64_t size, std::size_t n, std::size_t count) {
  auto const end_of = [&](std::size_t i) { return i == count ? size : size / count * i / alignment * alignment; };
  return {end_of(n), end_of(n + 1) - end_of(n)};
}

// One unit's session with its part of the work.
struct Part {
  std::unique_ptr<GpuSession> session;
  Mark mark;
};

using Queue = std::function<Status(std::size_t n, GpuSession& session)>;

Status begin(GpuUnit& unit, std::size_t n, Queue const& queue, Part& part) {
  auto session = unit.session();
  if (!session) return session.error();
  part.session = std::move(*session);
  if (auto const queued = queue(n, *part.session); !queued) return queued;
  auto const mark = part.session->mark(Lane::compute);
  if (!mark) return mark.error();
  part.mark = *mark;
  return ok();
}

Status finish(GpuUnit& unit, Part& part, std::chrono::steady_clock::time_point deadline) {
  auto const reached = wait_for(*part.session, part.mark, deadline);
  if (!reached) return reached.error();
  if (!*reached) return unit.took_too_long("a part of common work");
  unit.count(part.session->use());
  unit.give_back(std::move(part.session));
  return ok();
}

// Starts all parts before it waits for any.
Status do_together(std::vector<GpuUnit*> const& units, Queue const& queue) {
  std::vector<Part> parts(units.size());
  std::vector<std::optional<Error>> errors(units.size());
  auto const take = [&](std::size_t n, Status const& status) {
    if (status) return;
    units[n]->saw(status.error());
    errors[n] = status.error();
  };
  for (std::size_t n = 0; n < units.size(); ++n) take(n, begin(*units[n], n, queue, parts[n]));
  auto const begun = std::chrono::steady_clock::now();
  for (std::size_t n = 0; n < units.size(); ++n)
    if (!errors[n]) take(n, finish(*units[n], parts[n], begun + units[n]->patience()));
  for (std::size_t n = 0; n < units.size(); ++n)
    if (parts[n].session) units[n]->end(std::move(parts[n].session), *errors[n]);
  for (auto const& error : errors)
    if (error) return *error;
  return ok();
}

}  // namespace

bool see_each_other(std::span<GpuUnit* const> units) {
  return std::ranges::all_of(units, [units](GpuUnit* const one) {
    return std::ranges::all_of(units, [one](GpuUnit* const other) { return one->sees(*other); });
  });
}

Status fold_together(std::span<GpuUnit* const> units, ReduceOp op, Dtype dtype, std::span<Placed const> sources,
                     Placed result, std::uint64_t elements, Reducer::How how) {
  auto const width = element_bytes(dtype);
  auto const result_width = how.wide_results ? sizeof(float) : width;
  return do_together({units.begin(), units.end()}, [&](std::size_t n, GpuSession& session) {
    auto const slice = slice_of(elements, n, units.size());
    if (slice.size == 0) return ok();
    auto const at = slice.begin * width;
    std::vector<std::byte const*> parts;
    GpuUse use;
    for (auto const& source : sources) {
      parts.push_back(source.data + at);
      if (source.unit != units[n]) use.peer_bytes += slice.size * width;
    }
    auto* const destination = result.data + slice.begin * result_width;
    units[n]->count(use);
    return session.fold(op, dtype, {parts.data(), parts.size(), &destination, 1, slice.size, false}, how);
  });
}

Status spread_together(Placed from, std::span<Placed const> to, std::uint64_t bytes) {
  // Copies on the source's GPU come first and are whole, because they use no link.
  std::vector<Placed> all, others;
  for (auto const& place : to) (place.unit == from.unit ? all : others).push_back(place);
  auto const at_home = all.size();
  all.insert(all.end(), others.begin(), others.end());
  bool const is_whole = bytes < together_bytes_min || others.size() < 2;
  std::vector<GpuUnit*> units;
  for (auto const& place : all) units.push_back(place.unit);
  auto const copy = [&](std::size_t n, GpuSession& session, Placed source, Slice slice) {
    GpuUse use;
    if (source.unit != units[n]) use.peer_bytes = slice.size;
    units[n]->count(use);
    return session.copy(Lane::compute, all[n].data + slice.begin, source.data + slice.begin, slice.size);
  };
  auto const first = do_together(units, [&](std::size_t n, GpuSession& session) {
    if (is_whole || n < at_home) return copy(n, session, from, {0, bytes});
    return copy(n, session, from, slice_of(bytes, n - at_home, others.size()));
  });
  if (!first || is_whole) return first;
  units.erase(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(at_home));
  all = others;
  return do_together(units, [&](std::size_t n, GpuSession& session) {
    for (std::size_t i = 1; i < all.size(); ++i) {  // each GPU begins with a different one
      auto const other = (n + i) % all.size();
      if (auto const queued = copy(n, session, all[other], slice_of(bytes, other, all.size())); !queued) return queued;
    }
    return ok();
  });
}

}  // namespace chorus::devices
