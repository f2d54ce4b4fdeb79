// The records of collectives: all that run, and the last thousand that ended. Also what makes launches idempotent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/coordinator/kept.hpp"
#include "server/coordinator/record.hpp"

namespace chorus::coordinator {

using Random = std::function<std::uint64_t()>;  // 64 unpredictable bits

struct RecordLimits {
  std::size_t ended = 1000;
  std::size_t running = 1024;
};

class Records {
 public:
  Records(Random random, RecordLimits limits);

  // What was kept, in the order of the list, and the numbers that were given last, 0: none. Before everything else.
  void restore(std::vector<KeptCollective> const& kept, std::uint64_t last_run, std::uint64_t last_sequence);

  // How a launch names itself: by the id of a PUT, by the Idempotency-Key of a POST, or not at all.
  struct Name {
    std::optional<std::string> id;
    std::optional<std::string> key;
  };
  struct Begun {
    std::shared_ptr<Record> record;
    bool created = false;  // false: a repetition, nothing is to be launched
  };
  // Problems: already_exists for an id, idempotency_reused for a key, whose record has another body; unavailable above
  // the limit of running ones. Bodies are compared as decoded: white space and defaults make no difference. What was
  // refused and may be repeated counts as never asked for.
  [[nodiscard]] http::Checked<Begun> begin(Name const& name, api::CollectiveRequest const& request,
                                           std::string created_at);

  // Whether begin() would give a record that exists.
  [[nodiscard]] bool knows(Name const& name) const { return known(name) != nullptr && !may_be_repeated(name); }

  // The number of another run of a collective that is begun again.
  [[nodiscard]] std::uint64_t draw_run() { return next_run_++; }

  // The record has ended: from now on it may be forgotten, with its key. Gives the id of one that is forgotten instead.
  [[nodiscard]] std::optional<std::string> keep_for_a_while(Record const& record);

  // What the journal keeps of it, but for stage and group. The record is known.
  [[nodiscard]] KeptCollective kept(Record const& record) const;
  [[nodiscard]] std::uint64_t last_run() const { return next_run_ - 1; }
  [[nodiscard]] std::uint64_t last_sequence() const { return next_sequence_ - 1; }

  // Problems: unknown_collective.
  [[nodiscard]] http::Checked<std::shared_ptr<Record>> find(std::string_view id) const;

  // Newest first. `cursor` is what the page before gave. Problems: bad_request for a cursor that is no number.
  [[nodiscard]] http::Checked<api::CollectiveList> list(std::size_t limit, std::string_view cursor) const;

  [[nodiscard]] std::size_t running() const { return by_id_.size() - ended_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Record> record;
    std::uint64_t sequence = 0;
    std::optional<std::string> key;
  };
  [[nodiscard]] std::string const* known(Name const& name) const;  // its id
  [[nodiscard]] bool may_be_repeated(Name const& name) const;      // of one that is known
  void forget_name(Name const& name);
  void forget(std::string const& id);
  Entry& add(Name const& name, api::CollectiveRequest const& request, std::string created_at);

  Random random_;
  RecordLimits const limits_;
  std::uint64_t next_run_;
  std::uint64_t next_sequence_ = 1;
  std::map<std::string, Entry, std::less<>> by_id_;
  std::map<std::uint64_t, std::string> id_by_sequence_;
  std::map<std::string, std::string> id_by_key_;
  std::deque<std::string> ended_;  // ids, oldest first
};

// The value of Idempotency-Key: 1 to 255 printable characters. Problems: bad_request.
[[nodiscard]] http::Checked<std::optional<std::string>> idempotency_key(http::Fields const& fields);

}  // namespace chorus::coordinator
