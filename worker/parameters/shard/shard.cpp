#include "worker/parameters/shard/shard.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/initializer.hpp"
#include "worker/parameters/shard/dense_step.hpp"
#include "worker/parameters/shard/row_step.hpp"
#include "worker/parameters/shard/step.hpp"

namespace chorus::parameters {
namespace {

using http::Problem;
using http::ProblemCode;

constexpr std::size_t most_clients = 65536;

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 80)) + "'"; }

std::string listed(std::vector<std::string> const& names) {
  constexpr std::size_t shown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), shown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more" : text;
}

void initialize(std::span<std::byte> values, ShardSpec const& spec, Initializer const& initializer) {
  auto const width = spec.initial_row_elements;
  auto const size = element_bytes(spec.dtype);
  for (auto at = spec.begin; at < spec.end;) {
    auto const column = at % width;
    auto const count = std::min(width - column, spec.end - at);
    initializer.fill(at / width, values.subspan((at - spec.begin) * size, count * size), column);
    at += count;
  }
}

}  // namespace

Shard::Shard(ShardSpec spec, tensors::Pool& pool, Optimizer optimizer, Initializer initializer)
    : spec_(std::move(spec)),
      pool_(pool),
      optimizer_(std::move(optimizer)),
      initializer_(initializer),
      clocks_(spec_.staleness, spec_.staleness >= 0 ? spec_.clients : std::vector<std::string>()) {}

Result<std::unique_ptr<Shard>> Shard::make(ShardSpec spec, ShardMemory memory, Content content) {
  auto const initializer = Initializer::make(spec.initializer, spec.dtype);
  if (!initializer) return initializer.error();
  auto const is_lazy = spec.lazy_rows.has_value(), on_gpu = spec.on_gpu;
  auto optimizer = Optimizer::make(spec.optimizer, spec.dtype, is_lazy ? 0 : spec.elements(), spec.row_elements,
                                   on_gpu ? Optimizer::State::elsewhere : Optimizer::State::here);
  if (!optimizer) return optimizer.error();
  std::unique_ptr<GpuElements> elements;
  if (on_gpu) {
    auto const unit = memory.roomiest_gpu();
    if (!unit) return unit.error();
    auto made = GpuElements::make(**unit, *optimizer);
    if (!made) return made.error();
    elements = std::move(*made);
  }
  auto values = memory.pool.acquire(is_lazy || (on_gpu && content == Content::to_come) ? 0 : spec.bytes());
  if (!values) return values.error();
  if (!is_lazy && content == Content::initial) initialize((*values)->bytes(), spec, *initializer);
  std::unique_ptr<Shard> shard(new Shard(std::move(spec), memory.pool, std::move(*optimizer), *initializer));
  if (elements) {
    if (content == Content::initial) {
      if (auto const adopted = elements->adopt((*values)->bytes()); !adopted) return adopted.error();
      shard->values_ = std::move(*values);
    }
    shard->gpu_ = std::move(elements);
    return shard;
  }
  shard->values_ = std::move(*values);
  if (is_lazy) {
    shard->index_.emplace();
    return shard;
  }
  shard->optimizer_.adopt(shard->values_->bytes(), 0);
  return shard;
}

std::optional<Problem> Shard::refuse_data(ShardSpec const& spec, Push const& push) {
  auto const bytes = push.data->size_bytes();
  if (spec.lazy_rows && push.kind != PushKind::rows)
    return Problem(ProblemCode::unsupported, "rows of " + spec.parameter + " are created lazily: push rows");
  if (push.kind == PushKind::rows) {
    if (spec.row_elements == 0)
      return Problem(ProblemCode::unsupported, "the shards of " + spec.parameter + " cut its rows: push all elements");
    auto const checked =
        check_rows(push.data->bytes(), push.rows, spec.row_elements * element_bytes(push.dtype), spec.rows());
    if (!checked) return checked.error();
  } else if (auto const expected = spec.elements() * element_bytes(push.dtype); bytes != expected) {
    return Problem(ProblemCode::length_mismatch, "the body has " + std::to_string(bytes) + " bytes; elements " +
                                                     std::to_string(spec.begin) + " to " + std::to_string(spec.end) +
                                                     " of " + std::string(name(push.dtype)) + " have " +
                                                     std::to_string(expected));
  }
  return std::nullopt;
}

std::optional<Problem> Shard::refuse(Push const& push) const {
  auto problem = refuse_data(spec_, push);
  return problem ? problem : refuse_client(push);
}

std::optional<Problem> Shard::refuse_client(Push const& push) const {
  if (push.kind == PushKind::value || !clocks_.count()) return std::nullopt;
  if (!push.clock)
    return Problem(ProblemCode::bad_request, "clocks count here (staleness " + std::to_string(spec_.staleness) +
                                                 "): the header field Chorus-Clock is missing");
  if (clocks_.place(push.client.name)) return std::nullopt;
  std::vector<std::string> names;
  for (auto const& client : clocks_.progress()) names.push_back(client.client);
  return Problem(ProblemCode::bad_request,
                 "Chorus-Client is " + quoted(push.client.name) + "; those whose clocks count are " + listed(names));
}

http::Checked<Shard::Turn> Shard::turn(Push const& push) const {
  if (push.kind == PushKind::clients) return Turn::now;
  switch (window_.place(push.client, push.sequence)) {
    case Window::Place::seen:
      return Turn::seen;
    case Window::Place::ahead:
      return Turn::later;
    case Window::Place::fenced:
      return Problem(ProblemCode::epoch_fenced, "client " + quoted(push.client.name) + " has started again since");
    case Window::Place::next:
      break;
  }
  if (window_.size() >= most_clients && !window_.knows(push.client.name))
    return Problem(ProblemCode::unavailable, std::to_string(most_clients) + " clients are remembered already");
  if (push.kind == PushKind::value || !clocks_.count()) return Turn::now;
  auto const place = clocks_.place(push.client.name);
  if (!place) return Problem(ProblemCode::bad_request, "the clock of " + quoted(push.client.name) + " does not count");
  auto const done = clocks_.done(*place);
  auto const clock = push.clock.value_or(0);
  if (clock < done || (clocks_.in_rounds() && clock > done))
    return Problem(ProblemCode::out_of_order, "Chorus-Clock is " + std::to_string(clock) + "; the next clock of " +
                                                  quoted(push.client.name) + " is " + std::to_string(done));
  if (!clocks_.is_open(clock)) return Turn::later;
  if (!held_.empty() && (held_.front().kind != push.kind || held_.front().dtype != push.dtype))
    return Problem(ProblemCode::mismatch, "round " + std::to_string(clock) + " has begun with a push of " +
                                              std::string(push_kind_names[static_cast<std::size_t>(held_[0].kind)]) +
                                              " of " + std::string(name(held_[0].dtype)));
  return Turn::now;
}

std::string Shard::why_later(Push const& push) const {
  if (auto const next = window_.next_sequence(push.client); next != push.sequence)
    return "sequence " + std::to_string(push.sequence) + " of " + quoted(push.client.name) + " waits for " +
           std::to_string(next);
  return why_clock_waits(push.clock.value_or(0));
}

std::string Shard::why_clock_waits(std::uint64_t clock) const {
  return "clock " + std::to_string(clock) + " waits for " + listed(clocks_.awaited(clock));
}

// Returns true for the last push that its round waits for.
bool Shard::completes_round(Push const& push) const {
  return clocks_.in_rounds() && held_.size() + 1 == clocks_.size() && push.kind != PushKind::value;
}

Result<Shard::Change> Shard::prepare(Push push) {
  Change change;
  change.push_ = std::move(push);
  auto const& now = change.push_;
  Status prepared = ok();
  switch (now.kind) {
    case PushKind::value: {
      if (gpu_) {
        prepared = prepare_gpu_values(change);
        break;
      }
      // The pushed block becomes the values: nothing is copied.
      change.begin_ = [this, data = now.data] {
        optimizer_.adopt(data->bytes(), 0);
        return ok();
      };
      change.bytes_ = now.data->size_bytes();
      break;
    }
    case PushKind::clients: {
      Clocks changed = clocks_;
      changed.change(now.clients);
      auto const stays = [&](Push const& held) { return changed.place(held.client.name).has_value(); };
      auto const held = static_cast<std::size_t>(std::ranges::count_if(held_, stays));
      if (clocks_.in_rounds() && held > 0 && held == changed.size()) prepared = prepare_round(change, nullptr);
      break;
    }
    case PushKind::gradient:
    case PushKind::rows:
      if (completes_round(now))
        prepared = prepare_round(change, &now);
      else if (!clocks_.in_rounds())
        prepared = prepare_step(change, {now});
      break;
  }
  if (!prepared) return prepared.error();
  return change;
}

Status Shard::prepare_values(Change& change) {
  change.is_in_place_ = values_.use_count() == 1;
  if (change.is_in_place_) {
    change.target_ = values_;
    return ok();
  }
  auto block = pool_.acquire(spec_.bytes());
  if (!block) return block.error();
  change.target_ = std::move(*block);
  return ok();
}

std::vector<Push const*> Shard::in_client_order(Push const* last) const {
  std::vector<Push const*> ordered;
  for (auto const& held : held_) ordered.push_back(&held);
  if (last != nullptr) ordered.push_back(last);
  std::ranges::sort(ordered, {}, [this](Push const* push) { return clocks_.place(push->client.name); });
  return ordered;
}

Status Shard::prepare_round(Change& change, Push const* last) {
  std::vector<Push> gradients;
  for (auto const* push : in_client_order(last)) {
    auto const leaves =
        last == nullptr && std::ranges::find(change.push_.clients, push->client.name) == change.push_.clients.end();
    if (!leaves) gradients.push_back(*push);
  }
  return prepare_step(change, std::move(gradients));
}

Status Shard::prepare_step(Change& change, std::vector<Push> gradients) {
  if (index_) return prepare_lazy_step(change, std::move(gradients));
  if (gpu_) return prepare_gpu_step(change, std::move(gradients));
  if (auto status = prepare_values(change); !status) return status;
  auto const& first = gradients.front();
  if (first.kind == PushKind::rows) {
    for (auto const& push : gradients) change.bytes_ += 2 * push.data->size_bytes();
    change.bytes_ += change.is_in_place_ ? 0 : spec_.bytes();
    change.elements_ = RowStep::elements_max(gradients, spec_.row_elements);
    auto const step = std::make_shared<RowStep>(optimizer_, std::move(gradients), spec_.row_elements);
    change.begin_ = [this, step, source = values_, target = change.target_] {
      if (source != target && source->size_bytes() > 0)
        std::memcpy(target->data(), source->data(), source->size_bytes());
      MergedRows merged;
      auto const gradient = merge(step->pushes(), merged);
      step->begin(target, std::move(merged), gradient);
      return ok();
    };
    change.compute_ = [step](std::uint64_t from, std::uint64_t count) { step->compute(from, count); };
    return ok();
  }
  change.bytes_ = spec_.bytes() * (2 + gradients.size());
  std::shared_ptr<tensors::Block> sum;
  if (gradients.size() > 1 || clocks_.in_rounds()) {
    auto acquired = pool_.acquire(first.data->size_bytes());
    if (!acquired) return acquired.error();
    sum = std::move(*acquired);
  }
  auto const step = std::make_shared<DenseStep>(optimizer_, DenseStep::Values{values_, change.target_},
                                                std::move(gradients), std::move(sum), spec_.averages);
  change.elements_ = spec_.elements();
  change.begin_ = [step] {
    step->begin();
    return ok();
  };
  change.compute_ = [step](std::uint64_t from, std::uint64_t count) { step->compute(from, count); };
  return ok();
}

// Returns the gradient of pushes of rows, and sets the rows in `merged`, relative to the shard. A single push of
// distinct rows is used as it is; others are merged.
Gradient Shard::merge(std::span<Push const> pushes, MergedRows& merged) const {
  auto const& first = pushes.front();
  if (pushes.size() == 1 && has_ascending_rows(first)) {
    for (auto const row : rows_of(first)) merged.rows.push_back(row - spec_.rows().begin);
    return gradient_of(first);
  }
  merged = merge_rows(pushes, spec_.averages && clocks_.in_rounds(), spec_.row_elements, spec_.rows());
  return {merged.gradient, first.dtype};
}

void Shard::finish(Change change) {
  auto push = std::move(change.push_);
  auto const completes = completes_round(push);
  ++position_;
  change.begin_ = nullptr;
  change.compute_ = nullptr;
  if (push.kind == PushKind::value) {
    // The block came with the push and belongs to the shard from now on.
    values_ = std::const_pointer_cast<tensors::Block>(push.data);
    ++version_;
  } else if (change.target_) {
    values_ = std::move(change.target_);
    ++version_;
  } else if (change.is_on_gpu_) {
    values_ = nullptr;
    ++version_;
  }
  if (index_) rows_count_ = index_->size();
  if (push.kind == PushKind::clients) {
    clocks_.change(push.clients);
    auto const left = [this](Push const& held) { return !clocks_.place(held.client.name); };
    std::erase_if(held_, left);
    if (held_.size() == clocks_.size()) held_.clear();
    return;
  }
  window_.advance(push.client);
  if (push.kind == PushKind::value || !clocks_.count()) return;
  if (auto const place = clocks_.place(push.client.name)) clocks_.advance(*place, push.clock.value_or(0));
  if (completes)
    held_.clear();
  else if (clocks_.in_rounds())
    held_.push_back(std::move(push));
}

}  // namespace chorus::parameters
