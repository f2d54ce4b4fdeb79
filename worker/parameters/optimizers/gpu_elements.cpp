#include "worker/parameters/optimizers/gpu_elements.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "collectives/core/assert.hpp"

namespace chorus::parameters {
namespace {

using devices::GpuErrc;
using devices::GpuSession;
using devices::GpuUse;
using devices::Lane;
using devices::Mark;
using devices::PinnedPool;

bool is_half(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16; }

Status done(devices::GpuUnit const& unit, GpuSession& session, Mark mark) {
  auto const reached = wait_for(session, mark, std::chrono::steady_clock::now() + unit.patience());
  if (!reached) return reached.error();
  return *reached ? ok() : Status(unit.took_too_long("a part of a step"));
}

Status all_done(devices::GpuUnit const& unit, GpuSession& session, Lane lane) {
  auto const mark = session.mark(lane);
  return mark ? done(unit, session, *mark) : Status(mark.error());
}

GpuUse since(GpuUse const& now, GpuUse const& before) {
  return {now.in_bytes - before.in_bytes,         now.out_bytes - before.out_bytes,
          now.folded_bytes - before.folded_bytes, now.stepped_bytes - before.stepped_bytes,
          now.kernels - before.kernels,           now.in_seconds - before.in_seconds,
          now.out_seconds - before.out_seconds,   now.compute_seconds - before.compute_seconds,
          now.peer_bytes - before.peer_bytes,     now.nccl_bytes - before.nccl_bytes};
}

devices::StepScalars scalars_of(Coefficients const& c) {
  return {c.rate, c.first, c.second, c.first_rest, c.second_rest, c.root, c.epsilon, c.decay, c.scale, c.limit};
}

static_assert(static_cast<int>(Method::sgd) == static_cast<int>(devices::StepMethod::sgd) &&
              static_cast<int>(Method::momentum) == static_cast<int>(devices::StepMethod::momentum) &&
              static_cast<int>(Method::nesterov) == static_cast<int>(devices::StepMethod::nesterov) &&
              static_cast<int>(Method::adagrad) == static_cast<int>(devices::StepMethod::adagrad) &&
              static_cast<int>(Method::adam) == static_cast<int>(devices::StepMethod::adam) &&
              static_cast<int>(Method::adamw) == static_cast<int>(devices::StepMethod::adamw));

}  // namespace

// Copies pieces of host memory to the device through two slots in turn: the host fills one while the device works on
// the other.
class GpuElements::Conveyor {
 public:
  Conveyor(GpuElements const& elements, GpuSession& session, Slots& slots)
      : unit_(elements.unit_), session_(session), slots_(slots), arriving_(elements.arriving_) {}

  // Queues a copy of the piece and returns its address for later work on Lane::compute, until release().
  [[nodiscard]] Result<std::byte*> bring(std::span<std::byte const> piece) {
    auto const turn = next_ % 2;
    if (auto const free = done(unit_, session_, copied_[turn]); !free) return free.error();
    auto const slot = slots_[turn]->bytes().first(piece.size());
    std::memcpy(slot.data(), piece.data(), piece.size());
    auto* const place = arriving_[turn]->bytes().data();
    if (auto const after = session_.follow(Lane::in, used_[turn]); !after) return after.error();
    if (auto const queued = session_.copy(Lane::in, place, slot.data(), piece.size()); !queued) return queued.error();
    auto const copied = session_.mark(Lane::in);
    if (!copied) return copied.error();
    copied_[turn] = *copied;
    if (auto const after = session_.follow(Lane::compute, *copied); !after) return after.error();
    return place;
  }
  // Ends the use of the last piece: work queued later does not need it.
  [[nodiscard]] Status release() {
    auto const used = session_.mark(Lane::compute);
    if (!used) return used.error();
    used_[next_++ % 2] = *used;
    return ok();
  }

 private:
  devices::GpuUnit const& unit_;
  GpuSession& session_;
  Slots& slots_;
  std::array<std::shared_ptr<devices::GpuMemory>, 2> const& arriving_;
  std::array<Mark, 2> copied_ = {Mark{Lane::in, 0}, Mark{Lane::in, 0}};
  std::array<Mark, 2> used_;
  std::uint64_t next_ = 0;
};

Result<std::unique_ptr<GpuElements>> GpuElements::make(devices::GpuUnit& unit, Optimizer const& optimizer) {
  std::unique_ptr<GpuElements> elements(new GpuElements(unit));
  if (auto const taken = elements->take(optimizer, optimizer.elements(), optimizer.dtype()); !taken) {
    unit.saw(taken.error());
    return taken.error();
  }
  return elements;
}

Status GpuElements::take(Optimizer const& optimizer, std::uint64_t elements, Dtype dtype) {
  arrays_.push_back({"values", dtype, 0, nullptr});
  for (auto const& array : optimizer.state_elsewhere()) arrays_.push_back({array.name, array.dtype, array.initial, {}});
  // The gradient of f16 and bf16 values may be f32.
  auto const widest = is_half(dtype) ? sizeof(float) : element_bytes(dtype);
  auto const piece = std::min<std::uint64_t>(PinnedPool::slot_bytes, elements * widest);
  auto const take_one = [this](std::shared_ptr<devices::GpuMemory>& memory, std::uint64_t bytes) -> Status {
    auto taken = unit_.acquire(bytes);
    if (!taken) return taken.error();
    memory = std::move(*taken);
    return ok();
  };
  for (auto& array : arrays_)
    if (auto const taken = take_one(array.memory, elements * element_bytes(array.dtype)); !taken) return taken;
  for (auto& memory : arriving_)
    if (auto const taken = take_one(memory, piece); !taken) return taken;
  if (auto const taken = take_one(sums_, is_half(dtype) ? 2 * piece : piece); !taken) return taken;
  for (std::size_t i = 1; i < arrays_.size(); ++i)
    if (auto const filled = fill(arrays_[i]); !filled) return filled;
  return ok();
}

// Uploads one piece, which the device then copies to the rest, doubling it each time.
Status GpuElements::fill(Held const& array) {
  auto const memory = array.memory->bytes();
  std::vector<std::byte> piece(std::min<std::uint64_t>(memory.size(), PinnedPool::slot_bytes));
  if (piece.empty()) return ok();
  auto const fill_with = [&](auto value) {
    for (std::size_t at = 0; at < piece.size(); at += sizeof value)
      std::memcpy(piece.data() + at, &value, sizeof value);
  };
  array.dtype == Dtype::f64 ? fill_with(array.initial) : fill_with(static_cast<float>(array.initial));
  if (auto const begun = unit_.upload(memory.data(), piece); !begun) return begun;
  return in_session(nullptr, [&](GpuSession& session) -> Status {
    for (std::uint64_t filled = piece.size(); filled < memory.size(); filled *= 2) {
      auto const bytes = std::min<std::uint64_t>(filled, memory.size() - filled);
      auto const copied = session.copy(Lane::compute, memory.data() + filled, memory.data(), bytes);
      if (!copied) return copied;
    }
    return ok();
  });
}

// Runs work on the session. After an error no work is under way, unless the GPU is lost: then the session keeps the
// slots as long as it needs them.
template <class Work>
Status GpuElements::in_session(std::shared_ptr<Slots> slots, Work const& work) {
  if (auto const why = unit_.lost()) return Error(GpuErrc::lost, *why);
  if (session_ == nullptr) {
    auto session = unit_.gpu().session();
    if (!session) return seen(session.error());
    session_ = std::move(*session);
    counted_ = {};
  }
  auto status = work(*session_);
  if (status) status = all_done(unit_, *session_, Lane::compute);
  auto const use = session_->use();
  unit_.count(since(use, counted_));
  counted_ = use;
  if (status) return status;
  unit_.end(std::move(session_), status.error(), std::move(slots));
  return status;
}

GpuElements::Held const* GpuElements::find(std::string_view array) const {
  auto const found = std::ranges::find(arrays_, array, &Held::name);
  return found == arrays_.end() ? nullptr : &*found;
}

std::vector<GpuElements::Array> GpuElements::arrays() const {
  std::vector<Array> all;
  for (auto const& held : arrays_) all.push_back({held.name, held.dtype, held.memory->bytes().size()});
  return all;
}

Status GpuElements::seen(Status status) const {
  if (!status) unit_.saw(status.error());
  return status;
}

Status GpuElements::read(std::string_view array, std::span<std::byte> into) const {
  auto const* const held = find(array);
  CHORUS_ASSERT(held != nullptr && into.size() == held->memory->bytes().size(), "the whole array");
  return seen(unit_.download(into, held->memory->bytes().data()));
}

Status GpuElements::write(std::string_view array, std::span<std::byte const> from) {
  auto const* const held = find(array);
  CHORUS_ASSERT(held != nullptr && from.size() == held->memory->bytes().size(), "the whole array");
  return seen(unit_.upload(held->memory->bytes().data(), from));
}

Status GpuElements::adopt(std::span<std::byte const> values) {
  if (auto const written = write("values", values); !written) return written;
  auto const* const master = find("master");
  if (master == nullptr) return ok();
  return in_session(nullptr, [&](GpuSession& session) {
    auto const& held = arrays_.front();
    std::byte const* const source = held.memory->bytes().data();
    auto* const destination = master->memory->bytes().data();
    return session.fold(ReduceOp::sum, held.dtype,
                        {&source, 1, &destination, 1, values.size() / element_bytes(held.dtype), false},
                        {.wide_results = true});
  });
}

Result<std::shared_ptr<GpuElements::Slots>> GpuElements::reserve() const {
  auto slots = std::make_shared<Slots>();
  for (auto& slot : *slots) {
    auto taken = unit_.pinned().take();
    if (!taken) return taken.error();
    slot.emplace(std::move(*taken));
  }
  return slots;
}

Status GpuElements::step(Optimizer const& optimizer, Step const& step, std::span<Gradient const> gradients,
                         bool averages, std::shared_ptr<Slots> const& slots) {
  auto const dtype = gradients.front().dtype;
  auto const size = element_bytes(dtype);
  auto const divisor = static_cast<std::uint32_t>(gradients.size());
  auto const scale = averages ? devices::scale_of_average(dtype, gradients.size()) : 1;
  bool const wide = is_half(dtype);  // partial sums are f32
  auto* const sums = sums_->bytes().data();
  return in_session(slots, [&](GpuSession& session) -> Status {
    Conveyor conveyor(*this, session, *slots);
    auto const piece = arriving_.front()->bytes().size() / size;
    for (std::uint64_t at = 0; at < optimizer.elements(); at += piece) {
      auto const count = std::min<std::uint64_t>(piece, optimizer.elements() - at);
      for (std::size_t g = 0; g < gradients.size(); ++g) {
        auto const here = conveyor.bring(gradients[g].bytes.subspan(at * size, count * size));
        if (!here) return here.error();
        bool const is_first = g == 0, is_last = g + 1 == gradients.size();
        if (!is_first || !is_last) {
          std::byte const* const sources[] = {is_first ? *here : sums, *here};
          auto* const destination = is_last ? *here : sums;
          devices::Reducer::How how{.wide_source = wide && !is_first, .wide_results = wide && !is_last};
          if (is_last) how.divisor = divisor;
          if (is_last) how.scale = scale;
          if (is_last && !is_first && averages) {
            how.contributions = devices::compared_contributions(dtype, divisor);
            how.single = 1;
          }
          float const weights[] = {is_first ? 1 / scale : 1, 1 / scale};
          if (scale != 1) how.weights = weights;
          auto const added =
              session.fold(averages ? ReduceOp::avg : ReduceOp::sum, dtype,
                           {sources, is_first ? std::size_t{1} : std::size_t{2}, &destination, 1, count, false}, how);
          if (!added) return added;
        }
        for (std::uint64_t done_here = 0; is_last && done_here < count;) {
          auto const portion = optimizer.portion(step, at + done_here, at + count);
          auto const queued =
              queue(optimizer, portion.step, at + done_here, portion.elements, *here + done_here * size, dtype);
          if (!queued) return queued;
          done_here += portion.elements;
        }
        if (auto const released = conveyor.release(); !released) return released;
      }
    }
    return ok();
  });
}

Status GpuElements::step_rows(Optimizer& optimizer, std::span<std::uint64_t const> rows, std::uint64_t row_elements,
                              Gradient gradient, std::optional<double> gradient_norm,
                              std::shared_ptr<Slots> const& slots) {
  auto const size = element_bytes(gradient.dtype);
  return in_session(slots, [&](GpuSession& session) -> Status {
    Conveyor conveyor(*this, session, *slots);
    auto const piece = arriving_.front()->bytes().size() / size;
    auto const total = rows.size() * row_elements;
    Step step;
    for (std::uint64_t begin = 0; begin < total; begin += piece) {
      auto const end = std::min<std::uint64_t>(begin + piece, total);
      auto const here = conveyor.bring(gradient.bytes.subspan(begin * size, (end - begin) * size));
      if (!here) return here.error();
      for (auto at = begin; at < end;) {
        auto const row = rows[at / row_elements], column = at % row_elements;
        if (column == 0) step = optimizer.begin_row_step(row, gradient_norm);
        auto const count = std::min(row_elements - column, end - at);
        auto const queued =
            queue(optimizer, step, row * row_elements + column, count, *here + (at - begin) * size, gradient.dtype);
        if (!queued) return queued;
        at += count;
      }
      if (auto const released = conveyor.release(); !released) return released;
    }
    return ok();
  });
}

// Queues a step of elements with equal step counts.
Status GpuElements::queue(Optimizer const& optimizer, Step const& step, std::uint64_t first_element,
                          std::uint64_t count, std::byte const* gradient, Dtype gradient_dtype) {
  auto const dtype = optimizer.dtype();
  auto const place = [&](std::size_t array) {
    auto const& held = arrays_[array];
    return held.memory->bytes().data() + first_element * element_bytes(held.dtype);
  };
  bool const wide = gradient_dtype != dtype;
  if (!optimizer.method()) {
    auto* const values = place(0);
    std::byte const* const sources[] = {wide ? gradient : values, wide ? values : gradient};
    return session_->fold(ReduceOp::sum, dtype, {sources, 2, &values, 1, count, false}, {.wide_source = wide});
  }
  auto const coefficients = optimizer.coefficients(step);
  devices::StepOrder order;
  order.method = static_cast<devices::StepMethod>(*optimizer.method());
  order.dtype = dtype;
  order.wide_gradient = wide;
  order.shapes_gradient = optimizer.shapes_gradient(coefficients);
  order.values = place(0);
  order.gradient = gradient;
  // The method's own arrays come first, then the master copy.
  auto const own = arrays_.size() - (is_half(dtype) ? 1 : 0);
  if (own > 1) order.first = place(1);
  if (own > 2) order.second = place(2);
  if (is_half(dtype)) order.master = place(own);
  order.elements = count;
  order.scalars = scalars_of(coefficients);
  return session_->step(order);
}

}  // namespace chorus::parameters
