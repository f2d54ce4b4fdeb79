#include "worker/service/parameters/shards/checkpoint_load.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "http/json/json.hpp"
#include "worker/parameters/checkpoints/checkpoint.hpp"
#include "worker/parameters/checkpoints/errc.hpp"

namespace chorus::service {
namespace {

using checkpoints::CheckpointErrc;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Shard;

Checked<checkpoints::Checkpoint> open(checkpoints::Files& files, std::string const& directory,
                                      std::optional<std::uint64_t> number) {
  if (number) {
    auto one = checkpoints::Checkpoint::open(files, directory, *number);
    if (!one) return checkpoint_problem(one.error());
    return std::move(*one);
  }
  auto newest = checkpoints::open_newest(files, directory);
  if (!newest) return checkpoint_problem(newest.error());
  return std::move(newest->checkpoint);
}

// True if the records are of the shard itself, not of a parameter that was cut elsewhere.
bool is_same_cut(std::vector<checkpoints::ShardRecord> const& records, parameters::ShardSpec const& spec) {
  return !records.empty() && (records.size() == 1 || spec.begin == spec.end) && records[0].begin == spec.begin &&
         records[0].end == spec.end;
}

// One state for a shard that gets the elements of several: possible only if all of them had seen the same pushes.
Checked<api::ShardState> state_of(std::vector<checkpoints::ShardRecord> const& records,
                                  parameters::ShardSpec const& spec) {
  auto const same_cut = is_same_cut(records, spec);
  std::optional<api::ShardState> common;
  for (auto const& record : records) {
    auto state = http::decode<api::ShardState>(record.metadata, http::UnknownFields::ignore);
    if (!state) return state.error();
    if (same_cut) return std::move(*state);
    if (state->rows) state->rows = 0;  // rows of other shards have another number
    if (!state->held.empty())
      return Problem(ProblemCode::mismatch, "it was written in the middle of a round: make " + spec.parameter +
                                                " with the same number of shards");
    if (common && http::encode(*common) != http::encode(*state))
      return Problem(ProblemCode::mismatch, "its shards have not all seen the same pushes: make " + spec.parameter +
                                                " with the same number of shards");
    common = std::move(*state);
  }
  if (!common) return Problem(ProblemCode::mismatch, "it has no shard for these elements of " + spec.parameter);
  return std::move(*common);
}

// Reads from all shards of the checkpoint the rows that belong to this shard.
std::optional<Problem> load_rows(checkpoints::Checkpoint const& checkpoint, Shard& shard, api::ShardState& state) {
  auto const& spec = shard.spec();
  auto const range = spec.rows();
  std::map<std::string, std::vector<std::byte>> chosen;
  state.rows = 0;
  for (auto const& piece : checkpoint.pieces(spec.parameter, "rows", spec.begin, spec.end)) {
    auto const numbers = checkpoint.read_piece(piece);
    if (!numbers) return checkpoint_problem(numbers.error());
    std::vector<std::uint64_t> rows(numbers->size() / sizeof(std::uint64_t));
    if (!rows.empty()) std::memcpy(rows.data(), numbers->data(), rows.size() * sizeof(std::uint64_t));
    auto const is_mine = [&](std::uint64_t row) { return row >= range.begin && row < range.end; };
    *state.rows += static_cast<std::uint64_t>(std::ranges::count_if(rows, is_mine));
    for (auto const& array : checkpoint.arrays(spec.parameter)) {
      auto const content = checkpoint.pieces(spec.parameter, array, piece.begin, piece.end);
      if (content.size() != 1 || content.front().begin != piece.begin)
        return Problem(ProblemCode::mismatch, "array " + array + " has not the shards that the rows have");
      auto const bytes = checkpoint.read_piece(content.front());
      if (!bytes) return checkpoint_problem(bytes.error());
      auto& into = chosen[array];
      if (rows.empty()) continue;
      auto const each = static_cast<std::ptrdiff_t>(bytes->size() / rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (auto const from = bytes->begin() + static_cast<std::ptrdiff_t>(i) * each; is_mine(rows[i]))
          into.insert(into.end(), from, from + each);
    }
  }
  for (auto const& [array, bytes] : chosen) {
    auto const place = shard.place_for(array, bytes.size());
    if (place.size() != bytes.size())
      return Problem(*state.rows > *spec.lazy_rows ? ProblemCode::rows_exhausted : ProblemCode::mismatch,
                     "array " + array + " of " + std::to_string(*state.rows) + " rows does not fit " + spec.parameter);
    std::ranges::copy(bytes, place.begin());
  }
  return std::nullopt;
}

// For a shard that cuts rows, and so counts no steps of single rows.
std::optional<Problem> refuse_row_steps(checkpoints::Checkpoint const& checkpoint, parameters::ShardSpec const& spec) {
  if (spec.begin == spec.end) return std::nullopt;
  auto const width = spec.initial_row_elements;
  auto const first = spec.begin / width, last = (spec.end - 1) / width;
  std::vector<std::uint64_t> steps(last - first + 1);
  auto const read = checkpoint.read(spec.parameter, "row_steps", first * width, (last + 1) * width,
                                    std::as_writable_bytes(std::span(steps)));
  if (!read) return checkpoint_problem(read.error());
  if (std::ranges::all_of(steps, [](std::uint64_t own) { return own == 0; })) return std::nullopt;
  return Problem(ProblemCode::mismatch,
                 "single rows of " + spec.parameter + " were pushed: make it with shards that cut no row");
}

std::optional<Problem> fill_shard(checkpoints::Files& files, std::string const& directory,
                                  std::optional<std::uint64_t> number, Shard* shard) {
  auto const checkpoint = open(files, directory, number);
  if (!checkpoint) return checkpoint.error();
  auto const& spec = shard->spec();
  auto const* record = checkpoint->find(spec.parameter);
  if (record == nullptr) return Problem(ProblemCode::not_found, "the checkpoint has no parameter " + spec.parameter);
  if (record->dtype != name(spec.dtype) || record->shape != spec.shape)
    return Problem(ProblemCode::mismatch, "the checkpoint has " + spec.parameter + " with another dtype or shape");
  auto records = checkpoint->shards(spec.parameter, spec.begin, spec.end);
  // An empty shard needs the state alone, which any shard has.
  if (records.empty() && spec.begin == spec.end) records = checkpoint->shards(spec.parameter, 0, spec.whole);
  auto state = state_of(records, spec);
  if (!state) return state.error();
  if (state->rows.has_value() != spec.lazy_rows.has_value())
    return Problem(ProblemCode::mismatch, "rows of " + spec.parameter + " are created lazily there or here, not both");
  auto const is_cut_anew = !is_same_cut(records, spec);
  if (spec.lazy_rows && is_cut_anew) {
    if (auto problem = load_rows(*checkpoint, *shard, *state)) return problem;
  }
  for (auto const& array :
       spec.lazy_rows&& is_cut_anew ? std::vector<std::string>() : checkpoint->arrays(spec.parameter)) {
    auto const pieces = checkpoint->pieces(spec.parameter, array, spec.begin, spec.end);
    auto const is_whole = !pieces.empty() && pieces.front().elements_each == 0;
    if (is_whole) {
      auto const content = checkpoint->read_piece(pieces.front());
      if (!content) return checkpoint_problem(content.error());
      auto const place = shard->place_for(array, content->size());
      if (place.size() != content->size())
        return Problem(ProblemCode::mismatch, "array " + array + " does not fit " + spec.parameter);
      std::ranges::copy(*content, place.begin());
      continue;
    }
    auto const place = shard->place_for(array);
    if (!place && array == "row_steps" && spec.row_elements == 0) {
      if (auto problem = refuse_row_steps(*checkpoint, spec)) return problem;
      continue;
    }
    if (!place) return Problem(ProblemCode::mismatch, "the optimizer has no array " + array);
    if (auto const read = checkpoint->read(spec.parameter, array, spec.begin, spec.end, *place); !read)
      return checkpoint_problem(read.error());
  }
  if (!shard->begin_arrays_without(checkpoint->arrays(spec.parameter), *state))
    return Problem(ProblemCode::unavailable, "no memory for the state of the optimizer of " + spec.parameter);
  if (auto const settled = shard->settle(); !settled) return Problem(ProblemCode::unavailable, settled.error().detail);
  if (!shard->restore(*state))
    return Problem(ProblemCode::mismatch, "the checkpoint's state does not fit " + spec.parameter);
  return std::nullopt;
}

}  // namespace

Problem checkpoint_problem(Error const& error) {
  auto code = ProblemCode::unavailable;
  if (error.code == CheckpointErrc::not_found) code = ProblemCode::not_found;
  if (error.code == CheckpointErrc::damaged || error.code == CheckpointErrc::bad_manifest ||
      error.code.category() == checkpoints::safetensors_category())
    code = ProblemCode::digest_mismatch;
  if (error.code == CheckpointErrc::exists) code = ProblemCode::already_exists;
  if (error.code == CheckpointErrc::out_of_range || error.code == CheckpointErrc::bad_content)
    code = ProblemCode::mismatch;
  return {code, error.detail};
}

Checked<std::unique_ptr<Shard>> load_shard(checkpoints::Files& files, std::string const& directory,
                                           std::optional<std::uint64_t> number, parameters::ShardSpec const& spec,
                                           parameters::ShardMemory memory) {
  auto shard = Shard::make(spec, memory, Shard::Content::to_come);
  if (!shard) return parameters::why_not_made(shard.error());
  if (auto problem = fill_shard(files, directory, number, shard->get())) return std::move(*problem);
  return std::move(*shard);
}

}  // namespace chorus::service
