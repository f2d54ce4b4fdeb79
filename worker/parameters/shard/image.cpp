// Images of shards: copying a shard's state for a backup or a checkpoint, and restoring it.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "http/api/cluster/membership.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {
namespace {

constexpr std::string_view held_prefix = "held/";

ShardImage::Array array_of(std::string name, Dtype dtype, std::uint64_t each,
                           std::shared_ptr<tensors::Block const> block) {
  auto const bytes = block->bytes();
  return {std::move(name), dtype, each, {std::move(block), bytes}};
}

std::optional<std::size_t> held_index(std::string_view array) {
  if (!array.starts_with(held_prefix)) return std::nullopt;
  array.remove_prefix(held_prefix.size());
  std::size_t index = 0;
  auto const [end, failure] = std::from_chars(array.data(), array.data() + array.size(), index);
  if (failure != std::errc() || end != array.data() + array.size()) return std::nullopt;
  return index;
}

}  // namespace

void leave_open_round(ShardImage& image) {
  auto& state = image.state;
  auto const client_of = [&](api::ShardHeld const& held) {
    return std::ranges::find(state.clients, held.client, &api::ShardClient::name);
  };
  auto const clock_of = [&](api::ShardHeld const& held) {
    return std::ranges::find(state.clocks, held.client, &api::ShardClock::client);
  };
  // A client that has set values after its push of the round would have to set them again: then the round is kept.
  auto const is_last = [&](api::ShardHeld const& held) {
    auto const client = client_of(held);
    return client != state.clients.end() && client->next_sequence == held.sequence + 1 &&
           clock_of(held) != state.clocks.end();
  };
  if (!std::ranges::all_of(state.held, is_last)) return;
  for (auto const& held : state.held) {
    client_of(held)->next_sequence = held.sequence;
    --clock_of(held)->clocks_done;
    --state.position;
  }
  state.held.clear();
  std::erase_if(state.clients, [](auto const& client) { return client.next_sequence == 0; });
  std::erase_if(image.arrays, [](auto const& array) { return array.name.starts_with(held_prefix); });
}

api::ShardState Shard::state() const {
  api::ShardState state;
  state.version = version_;
  state.position = position_;
  state.steps = optimizer_.steps();
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
  if (index_)
    if (auto status = add_lazy_arrays(image); !status) return status.error();
  if (gpu_)
    if (auto status = add_gpu_arrays(image); !status) return status.error();
  if (!index_ && !gpu_) image.arrays.push_back(array_of("values", spec_.dtype, 1, values_));
  for (auto const& array : index_ ? std::vector<StateArray>() : optimizer_.state()) {
    auto block = pool_.acquire(array.bytes.size());
    if (!block) return block.error();
    if (!array.bytes.empty()) std::memcpy((*block)->data(), array.bytes.data(), array.bytes.size());
    image.arrays.push_back(array_of(std::string(array.name), array.dtype, array.elements_each, std::move(*block)));
  }
  for (std::size_t i = 0; i < held_.size(); ++i)
    image.arrays.push_back(array_of(std::string(held_prefix) + std::to_string(i), Dtype::u8, 0, held_[i].data));
  return image;
}

std::span<std::byte> Shard::place_for(std::string_view array, std::uint64_t bytes) {
  if (index_ && !held_index(array)) return lazy_place_for(array, bytes);
  if (gpu_)
    if (auto const place = gpu_place_for(array); place.data() != nullptr)
      return bytes == place.size() ? place : std::span<std::byte>();
  if (array == "values" && !gpu_) return bytes == values_->size_bytes() ? values_->bytes() : std::span<std::byte>();
  for (auto const& own : optimizer_.state())
    if (own.name == array) return bytes == own.bytes.size() ? own.bytes : std::span<std::byte>();
  auto const index = held_index(array);
  if (!index || *index >= clocks_.size()) return {};
  if (arriving_.size() <= *index) arriving_.resize(*index + 1);
  auto& block = arriving_[*index];
  if (!block || block->size_bytes() != bytes) {
    auto acquired = pool_.acquire(bytes);
    if (!acquired) return {};
    block = std::move(*acquired);
  }
  return block->bytes();
}

std::optional<std::span<std::byte>> Shard::place_for(std::string_view array) {
  if (index_) return std::nullopt;
  if (gpu_)
    if (auto const place = gpu_place_for(array); place.data() != nullptr) return place;
  if (array == "values" && !gpu_) return values_->bytes();
  for (auto const& own : optimizer_.state())
    if (own.name == array) return own.bytes;
  return std::nullopt;
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
  if (index_.has_value() != state.rows.has_value() || (index_ && !restore_rows(*state.rows))) return false;
  window_ = Window(std::move(entries));
  clocks_.restore(std::move(progress));
  held_ = std::move(held);
  arriving_.clear();
  for (auto const& push : held_)
    if (refuse_data(spec_, push)) return false;
  version_ = state.version;
  position_ = state.position;
  optimizer_.set_steps(state.steps);
  return true;
}

}  // namespace chorus::parameters
