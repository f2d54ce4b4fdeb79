// Writes the states of collectives to the journal and to the events.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <string>

#include "server/coordinator/collectives/records.hpp"
#include "server/coordinator/events/events.hpp"
#include "server/coordinator/journal/journal.hpp"

namespace chorus::coordinator {

// Used on the journal's thread; journal and events outlive it. The calls come in the order of a record's states.
//
// A launch waits for the disk twice: before the first worker is told to run, and before the first is told to commit.
// Other notes are written with the next transaction.
class CollectiveHistory {
 public:
  CollectiveHistory(Journal& journal, Events& events) : journal_(journal), events_(events) {}

  void begun(Records const& records, Record const& record, api::Group const& group);
  void planned(Record const& record);
  void stalled(Record const& record);  // the record says how
  void moving(Record const& record);   // the record moves again after stalled()
  // Returns when the launch is durable; only then may workers hear of the run. Problems: those of Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> launching(Record const& record, TimePoint deadline);
  // Returns when the decision is durable; only then may workers commit.
  boost::asio::awaitable<std::optional<http::Problem>> deciding(Record const& record, TimePoint deadline);
  // An attempt has failed, and the record is pending again.
  void begun_again(Records const& records, Record const& record, api::Group const& group);
  // The record is reset to pending under a new run number.
  void asked_again(Records const& records, Record const& record, api::Group const& group);
  void ended(Records const& records, Record const& record);
  void forgotten(std::string const& id);

  // Takes over an unfinished record from the previous process.
  void resumed(JournalCollective kept);

 private:
  void keep_begun(Records const& records, Record const& record, api::Group const& group);
  // `why`: the reason if the record has no error of its own.
  void tell(char const* what, Record const& record, http::Problem const* why = nullptr);

  Journal& journal_;
  Events& events_;
  std::map<std::string, JournalCollective> open_;  // by id
};

}  // namespace chorus::coordinator
