// The records of all running collectives and of the last thousand that ended. Makes launches idempotent.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/idempotency_key.hpp"
#include "server/coordinator/collectives/record.hpp"
#include "server/coordinator/journal/journal_state.hpp"

namespace chorus::coordinator {

using Random = std::function<std::uint64_t()>;  // 64 unpredictable bits

struct RecordLimits {
  std::size_t ended = 1000;
  std::size_t running = 1024;
};

class Records {
 public:
  Records(Random random, RecordLimits limits);

  // Restores the kept records in the order of the list, and the last numbers given out (0: none). Called before
  // everything else.
  void restore(std::vector<JournalCollective> const& kept, std::uint64_t last_run, std::uint64_t last_sequence);

  // The name of a launch: the id of a PUT, the Idempotency-Key of a POST, or none.
  struct Name {
    std::optional<std::string> id;
    std::optional<std::string> key;
  };
  struct Begun {
    std::shared_ptr<Record> record;
    bool created = false;  // false: a repetition, which is not launched
  };
  // Begins a record, or finds the one with this name. Bodies are compared as decoded: white space and defaults make no
  // difference. A refused record that may be repeated counts as unknown.
  // Problems: already_exists if the id has another body; idempotency_reused if the key has another body; unavailable
  // above the limit of running collectives.
  [[nodiscard]] http::Checked<Begun> begin(Name const& name, api::CollectiveRequest const& request,
                                           std::string created_at);

  // True if begin() would return an existing record.
  [[nodiscard]] bool knows(Name const& name) const { return known(name) != nullptr && !may_be_repeated(name); }

  // Returns a new run number, for another attempt of a collective.
  [[nodiscard]] std::uint64_t draw_run() { return next_run_++; }

  // Marks a record as ended: it may now be forgotten, with its key. Returns the id of the record that is forgotten in
  // its place, if any.
  [[nodiscard]] std::optional<std::string> keep_for_a_while(Record const& record);

  // Returns the row for the journal, without stage and group. The record is known.
  [[nodiscard]] JournalCollective kept(Record const& record) const;
  [[nodiscard]] std::uint64_t last_run() const { return next_run_ - 1; }
  [[nodiscard]] std::uint64_t last_sequence() const { return next_sequence_ - 1; }

  // Problems: unknown_collective.
  [[nodiscard]] http::Checked<std::shared_ptr<Record>> find(std::string_view id) const;

  // Lists the newest first. `cursor` comes from the previous page. Problems: bad_request for a cursor that is not a
  // number.
  [[nodiscard]] http::Checked<api::CollectiveList> list(std::size_t limit, std::string_view cursor) const;

  [[nodiscard]] std::size_t running() const { return by_id_.size() - ended_.size(); }

 private:
  struct Entry {
    std::shared_ptr<Record> record;
    std::uint64_t sequence = 0;
    std::optional<std::string> key;
  };
  [[nodiscard]] std::string const* known(Name const& name) const;  // the record's id
  [[nodiscard]] bool may_be_repeated(Name const& name) const;      // of a known name
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

}  // namespace chorus::coordinator
