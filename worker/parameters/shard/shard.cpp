#include "worker/parameters/shard/shard.hpp"

#include <algorithm>
#include <charconv>

#include "http/api/cluster/membership.hpp"

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

constexpr std::string_view held_prefix = "held/";

std::optional<std::size_t> held_index(std::string_view array) {
  if (!array.starts_with(held_prefix)) return std::nullopt;
  array.remove_prefix(held_prefix.size());
  std::size_t index = 0;
  auto const [end, failure] = std::from_chars(array.data(), array.data() + array.size(), index);
  if (failure != std::errc() || end != array.data() + array.size()) return std::nullopt;
  return index;
}

}  // namespace

Shard::Shard(ShardSpec spec, tensors::Pool& pool)
    : spec_(std::move(spec)),
      pool_(pool),
      clocks_(spec_.staleness, spec_.staleness >= 0 ? spec_.clients : std::vector<std::string>()) {}

Result<std::unique_ptr<Shard>> Shard::make(ShardSpec spec, ShardMemory memory, Content content) {
  std::unique_ptr<Shard> shard(new Shard(std::move(spec), memory.pool));
  auto elements = Elements::make(shard->spec_, memory, content);
  if (!elements) return elements.error();
  shard->elements_ = std::move(*elements);
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

// Returns true if all clients that stay have pushed for the open round. New clients begin with the next round.
bool Shard::ends_round(std::vector<std::string> const& clients) const {
  auto const stays = [&](std::string const& client) { return std::ranges::find(clients, client) != clients.end(); };
  auto const held = std::ranges::count_if(held_, [&](Push const& push) { return stays(push.client.name); });
  return held > 0 && held == std::ranges::count_if(clocks_.progress(), stays, &Clocks::Progress::client);
}

Result<Shard::Change> Shard::prepare(Push push) {
  Change change;
  change.push_ = std::move(push);
  auto const& now = change.push_;
  Status prepared = ok();
  switch (now.kind) {
    case PushKind::value:
      prepared = elements_->prepare_values(change.work_, now.data);
      break;
    case PushKind::clients:
      if (ends_round(now.clients)) prepared = prepare_round(change, nullptr);
      break;
    case PushKind::gradient:
    case PushKind::rows:
      if (completes_round(now))
        prepared = prepare_round(change, &now);
      else if (!clocks_.in_rounds())
        prepared = elements_->prepare_step(change.work_, {now});
      break;
  }
  if (!prepared) return prepared.error();
  return change;
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
  return elements_->prepare_step(change.work_, std::move(gradients));
}

void Shard::finish(Change change) {
  auto push = std::move(change.push_);
  auto const completes = completes_round(push);
  ++position_;
  change.work_.begin = nullptr;
  change.work_.compute = nullptr;
  if (change.work_.is_new) ++version_;
  elements_->finish(std::move(change.work_));
  if (push.kind == PushKind::clients) {
    auto const ends = ends_round(push.clients);
    clocks_.change(push.clients);
    auto const left = [this](Push const& held) { return !clocks_.place(held.client.name); };
    std::erase_if(held_, left);
    if (ends) held_.clear();
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

api::ShardState Shard::state() const {
  api::ShardState state;
  state.version = version_;
  state.position = position_;
  state.steps = elements_->steps();
  for (auto const& [name, entry] : window_.entries())
    state.clients.push_back({name, api::to_hex(entry.incarnation), entry.next_sequence});
  for (auto const& client : clocks_.progress()) state.clocks.push_back({client.client, client.done});
  for (auto const& push : held_) {
    auto const rows = push.kind == PushKind::rows ? std::optional(push.rows) : std::nullopt;
    state.held.push_back({push.client.name, push.sequence, std::string(name(push.dtype)), rows});
  }
  state.rows = rows();
  return state;
}

Result<ShardImage> Shard::image() {
  ShardImage image;
  image.state = state();
  if (auto added = elements_->add_arrays(image.arrays); !added) return added.error();
  for (std::size_t i = 0; i < held_.size(); ++i) {
    auto const& data = held_[i].data;
    image.arrays.push_back({std::string(held_prefix) + std::to_string(i), Dtype::u8, 0, {data, data->bytes()}});
  }
  return image;
}

std::span<std::byte> Shard::place_for(std::string_view array, std::uint64_t bytes) {
  auto const index = held_index(array);
  if (!index) return elements_->place_for(array, bytes);
  if (*index >= clocks_.size()) return {};
  if (arriving_.size() <= *index) arriving_.resize(*index + 1);
  auto& block = arriving_[*index];
  if (!block || block->size_bytes() != bytes) {
    auto acquired = pool_.acquire(bytes);
    if (!acquired) return {};
    block = std::move(*acquired);
  }
  return block->bytes();
}

bool Shard::restore(api::ShardState const& state) {
  Window::Entries entries;
  for (auto const& client : state.clients) {
    auto const incarnation = api::from_hex(client.incarnation);
    if (!incarnation) return false;
    entries[client.name] = {*incarnation, client.next_sequence};
  }
  std::vector<Clocks::Progress> progress;
  for (auto const& clock : state.clocks) progress.push_back({clock.client, clock.clocks_done});
  if (!clocks_.count() && !progress.empty()) return false;
  std::vector<Push> held;
  for (auto const& waiting : state.held) {
    auto const dtype = parse_dtype(waiting.dtype);
    if (!dtype || held.size() >= arriving_.size() || !arriving_[held.size()]) return false;
    Push push;
    push.kind = waiting.rows ? PushKind::rows : PushKind::gradient;
    push.client = {waiting.client, entries[waiting.client].incarnation};
    push.sequence = waiting.sequence;
    push.dtype = *dtype;
    push.data = arriving_[held.size()];
    push.rows = waiting.rows.value_or(0);
    held.push_back(std::move(push));
  }
  if (!elements_->restore(state)) return false;
  window_ = Window(std::move(entries));
  clocks_.restore(std::move(progress));
  held_ = std::move(held);
  arriving_.clear();
  for (auto const& push : held_)
    if (refuse_data(spec_, push)) return false;
  version_ = state.version;
  position_ = state.position;
  return true;
}

}  // namespace chorus::parameters
