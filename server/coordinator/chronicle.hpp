// What becomes of collectives, as the journal keeps it and as those who follow the events read it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <optional>
#include <string>

#include "server/coordinator/events.hpp"
#include "server/coordinator/journal.hpp"
#include "server/coordinator/records.hpp"

namespace chorus::coordinator {

// On the journal's thread; what it refers to outlives it. The order of the calls is that of the states of a record.
//
// A launch waits for the disk twice: before the first worker is told to run, and before the first is told to commit.
// What was noted in between, and the end, travels with the next transaction.
class Chronicle {
 public:
  Chronicle(Journal& journal, Events& events) : journal_(journal), events_(events) {}

  void begun(Records const& records, Record const& record, api::Group const& group);
  void planned(Record const& record);
  void stalled(Record const& record);  // its record says how
  void moving(Record const& record);   // again
  // Durable: from now on workers may have heard of the run. Problems: those of Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> launching(Record const& record);
  // Durable: from now on workers may have committed.
  boost::asio::awaitable<std::optional<http::Problem>> deciding(Record const& record);
  // An attempt has failed, and the record is pending again.
  void begun_again(Records const& records, Record const& record, api::Group const& group);
  // The record is as if nothing had been done, but for its run.
  void asked_again(Records const& records, Record const& record, api::Group const& group);
  void ended(Records const& records, Record const& record);
  void forgotten(std::string const& id);

  // A record of the last life that has not ended.
  void resumed(KeptCollective kept);

 private:
  void keep_begun(Records const& records, Record const& record, api::Group const& group);
  // `why`: of a record that has no error of its own.
  void tell(char const* what, Record const& record, http::Problem const* why = nullptr);

  Journal& journal_;
  Events& events_;
  std::map<std::string, KeptCollective> open_;  // by id
};

}  // namespace chorus::coordinator
