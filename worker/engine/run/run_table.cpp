#include "worker/engine/run/run_table.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/transport/send_connection.hpp"

namespace chorus::engine {

Run* RunTable::find(std::uint64_t number) {
  if (awaits_coalesced_frame(number)) unfold_exchange();
  for (auto const& each : runs_)
    if (each.number == number) return each.run.get();
  return nullptr;
}

std::vector<std::uint64_t> RunTable::numbers() const {
  std::vector<std::uint64_t> numbers;
  for (auto const& each : runs_) numbers.push_back(each.number);
  return numbers;
}

Run& RunTable::add(std::unique_ptr<Run> added) {
  auto const number = added->spec().run;
  auto& run = *runs_.emplace_back(number, std::move(added)).run;
  if (run.has_device()) on_devices_.push_back(&run);
  dirty_.push(run);
  return run;
}

std::unique_ptr<Run> RunTable::take(std::uint64_t number) {
  auto const entry = std::ranges::find(runs_, number, &Numbered::number);
  auto run = std::move(entry->run);
  runs_.erase(entry);
  if (run->has_device()) std::erase(on_devices_, run.get());
  return run;
}

void RunTable::unfold_exchange(links::Taken taken) {
  if (exchange_.run == nullptr || exchange_.has_arrived) return;
  auto under_way = std::exchange(exchange_, {});
  under_way.run->unfold(taken);
  auto& run = add(std::move(under_way.run));
  under_way.send_connection->add(*run.sends().front());
}

EndedRun& RunTable::record_end(Run const& run) {
  auto const& spec = run.spec();
  auto& ended = ended_.at(spec.run);
  ended.token = spec.token;
  ended.fingerprint = spec.fingerprint;
  ended.description = run.description();
  ended.was_started = true;
  ended.was_message = spec.envelope.has_value();
  return ended;
}

EndedRun& RunTable::record_end(std::uint64_t number, std::optional<std::uint64_t> token, Failure failure) {
  auto& ended = ended_.at(number);
  ended = {};
  ended.token = token;
  ended.failure = std::move(failure);
  return ended;
}

}  // namespace chorus::engine
