#include "worker/service/parameters/shards/checkpoint_store.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "http/json/json.hpp"
#include "worker/parameters/checkpoints/errc.hpp"
#include "worker/parameters/checkpoints/leftovers.hpp"
#include "worker/parameters/checkpoints/write.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::service {
namespace {

namespace asio = boost::asio;
using checkpoints::CheckpointErrc;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Shard;

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

constexpr std::uint64_t longest_hold_ms = 10'000;
constexpr std::chrono::minutes store_patience{10};  // for a whole file

std::string checkpoint_of(std::string const& name, std::uint64_t number) { return name + "/" + std::to_string(number); }

struct Written {
  parameters::ShardSpec spec;
  parameters::ShardImage image;
};

// The following functions run on the disk's threads.
Checked<std::string> write_there(checkpoints::Files& files, std::string const& directory, std::uint64_t number,
                                 std::string const& file, std::vector<Written> const& written) {
  std::vector<checkpoints::ShardContent> contents;
  checkpoints::Manifest part;
  part.number = number;
  for (auto const& [spec, image] : written) {
    checkpoints::ShardContent content{spec.parameter, spec.begin, spec.end, {}, http::encode(image.state), {}};
    for (auto const& array : image.arrays)
      content.arrays.push_back({array.name, array.dtype, array.elements_each, array.content.bytes});
    contents.push_back(std::move(content));
    checkpoints::ParameterRecord record{spec.parameter, std::string(name(spec.dtype)), spec.shape, "{}"};
    if (std::ranges::find(part.parameters, record) == part.parameters.end())
      part.parameters.push_back(std::move(record));
  }
  auto record = checkpoints::write_file(files, directory, number, file, contents);
  if (!record) return checkpoint_problem(record.error());
  part.files.push_back(std::move(*record));
  return checkpoints::to_text(part);
}

Checked<bool> commit_there(checkpoints::Files& files, std::string const& directory,
                           api::CheckpointCommit const& request) {
  checkpoints::Manifest whole;
  whole.number = request.number;
  for (auto const& text : request.parts) {
    auto part = checkpoints::parse_manifest(text);
    if (!part) return Problem(ProblemCode::invalid_field, "a part of the manifest: " + part.error().detail);
    std::ranges::move(part->files, std::back_inserter(whole.files));
    for (auto& parameter : part->parameters)
      if (std::ranges::find(whole.parameters, parameter.name, &checkpoints::ParameterRecord::name) ==
          whole.parameters.end())
        whole.parameters.push_back(std::move(parameter));
  }
  if (auto const committed = checkpoints::commit(files, directory, whole); !committed)
    return checkpoint_problem(committed.error());
  if (request.keep > 0)
    if (auto const removed = checkpoints::remove_old(files, directory, request.keep); !removed)
      return checkpoint_problem(removed.error());
  return true;
}

// Checkpoints of other names are swept too: the disk may be full of their leftovers.
Checked<std::uint64_t> number_there(checkpoints::Files& files, std::string const& root, std::string const& directory) {
  checkpoints::sweep(files, root);
  if (auto const removed = checkpoints::remove_leftovers(files, directory); !removed)
    return checkpoint_problem(removed.error());
  if (auto const made = files.make_directory(directory); !made) return checkpoint_problem(made.error());
  auto const number = checkpoints::next_number(files, directory);
  if (!number) return checkpoint_problem(number.error());
  return *number;
}

Checked<std::uint64_t> newest_there(checkpoints::Files& files, std::string const& directory) {
  auto const newest = checkpoints::open_newest(files, directory);
  if (!newest) return checkpoint_problem(newest.error());
  return newest->checkpoint.manifest().number;
}

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
    if (!place) return Problem(ProblemCode::mismatch, "the optimizer has no array " + array);
    if (auto const read = checkpoint->read(spec.parameter, array, spec.begin, spec.end, *place); !read)
      return checkpoint_problem(read.error());
  }
  if (auto const settled = shard->settle(); !settled) return Problem(ProblemCode::unavailable, settled.error().detail);
  if (!shard->restore(*state))
    return Problem(ProblemCode::mismatch, "the checkpoint's state does not fit " + spec.parameter);
  return std::nullopt;
}

Checked<std::unique_ptr<Shard>> load_there(checkpoints::Files& files, std::string const& directory,
                                           std::optional<std::uint64_t> number, parameters::ShardSpec const& spec,
                                           parameters::ShardMemory memory) {
  auto shard = Shard::make(spec, memory, Shard::Content::to_come);
  if (!shard) return parameters::why_not_made(shard.error());
  if (auto problem = fill_shard(files, directory, number, shard->get())) return std::move(*problem);
  return std::move(*shard);
}

http::TimePoint until_patience_ends() { return std::chrono::steady_clock::now() + store_patience; }

}  // namespace

Checked<std::string> CheckpointStore::directory(std::string const& name) const {
  if (root_.empty()) return Problem(ProblemCode::unsupported, "this worker was started without --checkpoint-directory");
  if (!is_valid_worker_id(name))
    return Problem(ProblemCode::bad_request, "a checkpoint's name is 1 to 64 letters, digits and ._-");
  return root_ + "/" + name;
}

asio::awaitable<void> CheckpointStore::sweep() {
  if (root_.empty()) co_return;
  std::function<Checked<bool>()> const work = [files = disk_.files(), root = root_]() -> Checked<bool> {
    checkpoints::sweep(*files, root);
    return true;
  };
  auto title = "removing what checkpoints in " + root_ + " have left";
  // A failed removal is repeated by the next checkpoint.
  static_cast<void>(co_await disk_.run(std::move(title), work, until_patience_ends()));
}

asio::awaitable<Checked<std::uint64_t>> CheckpointStore::next_number(std::string name) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<std::uint64_t>()> const work = [files = disk_.files(), root = root_, directory = *where] {
    return number_there(*files, root, directory);
  };
  auto title = "beginning a checkpoint " + name;
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<Checked<std::uint64_t>> CheckpointStore::newest_number(std::string name) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<std::uint64_t>()> const work = [files = disk_.files(), directory = *where] {
    return newest_there(*files, directory);
  };
  auto title = "looking for the newest checkpoint " + name;
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<Checked<api::CheckpointPlaces>> CheckpointStore::hold(std::string name, api::CheckpointPlaces shards) {
  auto const timeout = std::chrono::milliseconds(std::min(shards.timeout_ms, longest_hold_ms));
  auto const until = std::chrono::steady_clock::now() + timeout;
  for (auto& item : shards.items) {
    auto const host = book_.find(item.parameter, item.shard);
    if (!host) co_return host.error();
    auto place = co_await (*host)->hold(checkpoint_of(name, shards.number), until);
    if (!place) co_return place.error();
    item.clients = std::move(*place);
  }
  co_return shards;
}

asio::awaitable<Checked<api::CheckpointPlaces>> CheckpointStore::keep_images(std::string name,
                                                                             api::CheckpointPlaces places) {
  auto const checkpoint = checkpoint_of(name, places.number);
  std::vector<std::shared_ptr<parameters::ShardHost>> hosts;
  for (auto const& item : places.items) {
    auto host = book_.find(item.parameter, item.shard);
    if (!host) co_return host.error();
    hosts.push_back(std::move(*host));
  }
  // All shards first: a client may wait for one shard before it goes on with the next.
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (auto problem = hosts[i]->aim(checkpoint, places.items[i].clients)) co_return std::move(*problem);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto place = co_await hosts[i]->keep_image(checkpoint);
    if (!place) co_return place.error();
    places.items[i].clients = std::move(*place);
  }
  co_return places;
}

asio::awaitable<Checked<std::string>> CheckpointStore::write(std::string name, std::string file,
                                                             api::CheckpointFile request, http::TimePoint deadline) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::vector<Written> written;
  for (auto const& wanted : request.shards) {
    auto const host = book_.find(wanted.parameter, wanted.shard);
    if (!host) co_return host.error();
    auto image = co_await (*host)->image_for(checkpoint_of(name, request.number), deadline);
    if (!image) co_return image.error();
    written.push_back({(*host)->spec(), std::move(*image)});
  }
  auto title = "writing checkpoint " + checkpoint_of(name, request.number);
  std::function<Checked<std::string>()> const work =
      [files = disk_.files(), directory = *where, number = request.number, file = std::move(file),
       written = std::make_shared<std::vector<Written> const>(std::move(written))] {
        return write_there(*files, directory, number, file, *written);
      };
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

asio::awaitable<std::optional<Problem>> CheckpointStore::discard(std::string name, std::string file,
                                                                 std::uint64_t number) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  std::function<Checked<bool>()> const work = [files = disk_.files(), directory = *where, file = std::move(file),
                                               number]() -> Checked<bool> {
    if (auto const removed = checkpoints::discard_file(*files, directory, number, file); !removed)
      return checkpoint_problem(removed.error());
    return true;
  };
  auto title = "discarding checkpoint " + checkpoint_of(name, number);
  auto const done = co_await disk_.run(std::move(title), work, until_patience_ends());
  if (!done) co_return done.error();
  co_return std::nullopt;
}

asio::awaitable<std::optional<Problem>> CheckpointStore::commit(std::string name, api::CheckpointCommit request) {
  auto const where = directory(name);
  if (!where) co_return where.error();
  auto title = "committing checkpoint " + checkpoint_of(name, request.number);
  std::function<Checked<bool>()> const work = [files = disk_.files(), directory = *where,
                                               request = std::move(request)] {
    return commit_there(*files, directory, request);
  };
  auto const done = co_await disk_.run(std::move(title), work, until_patience_ends());
  if (!done) co_return done.error();
  co_return std::nullopt;
}

asio::awaitable<Checked<std::unique_ptr<Shard>>> CheckpointStore::load(api::ShardAssignment assignment) {
  auto const where = directory(assignment.checkpoint->name);
  if (!where) co_return where.error();
  auto spec = parameters::ShardSpec::from(assignment);
  if (!spec) co_return spec.error();
  auto title = "restoring shard " + std::to_string(assignment.shard) + " of " + assignment.parameter.name +
               " from checkpoint " + assignment.checkpoint->name;
  std::function<Checked<std::unique_ptr<Shard>>()> const work =
      [files = disk_.files(), directory = *where, number = assignment.checkpoint->number, spec = std::move(*spec),
       memory = memory_] { return load_there(*files, directory, number, spec, memory); };
  co_return co_await disk_.run(std::move(title), work, until_patience_ends());
}

}  // namespace chorus::service
