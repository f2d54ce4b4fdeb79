// Every JSON message between users, workers and the coordinator: what is accepted is written and read back as it was,
// and what is refused says why.
#include "http/json/json.hpp"

#include <array>

#include "http/api/cluster/constants.hpp"
#include "http/api/cluster/events.hpp"
#include "http/api/cluster/links.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/cluster/probes.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/collectives/runs.hpp"
#include "http/api/collectives/simulations.hpp"
#include "http/api/parameters/optimizers.hpp"
#include "http/api/tensors/client_memory.hpp"
#include "http/api/tensors/tensors.hpp"
#include "tests/fuzz/input.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

template <class Message>
void check(std::string_view body, UnknownFields unknown) {
  auto const message = decode<Message>(body, unknown);
  if (!message) {
    CHORUS_ASSERT(!message.error().detail.empty(), "what is refused has a reason");
    CHORUS_ASSERT(message.error().code != ProblemCode::internal, "no body is an internal error");
    return;
  }
  auto const text = encode(*message);
  auto const again = decode<Message>(text, UnknownFields::refuse);
  // Answers may be longer than what a user may send.
  if (!again && again.error().code == ProblemCode::payload_too_large) return;
  CHORUS_ASSERT(again, "what is written is accepted");
  CHORUS_ASSERT(encode(*again) == text, "what is read is written as it was");
}

using Check = void (*)(std::string_view, UnknownFields);
// An input begins with an index into this table: append, or the corpus means something else.
constexpr std::array checks{Check(&check<api::CollectiveRequest>),
                            Check(&check<api::Collective>),
                            Check(&check<api::CollectiveList>),
                            Check(&check<api::PlanRequest>),
                            Check(&check<api::PlanAnswer>),
                            Check(&check<api::GroupRequest>),
                            Check(&check<api::Group>),
                            Check(&check<api::GroupAssignment>),
                            Check(&check<api::GroupList>),
                            Check(&check<api::JoinRequest>),
                            Check(&check<api::Worker>),
                            Check(&check<api::LeaseRequest>),
                            Check(&check<api::LeaseAnswer>),
                            Check(&check<api::WorkerList>),
                            Check(&check<api::RunRequest>),
                            Check(&check<api::RunReport>),
                            Check(&check<api::RunStatus>),
                            Check(&check<api::CommitAnswer>),
                            Check(&check<api::LocalCall>),
                            Check(&check<api::LocalReport>),
                            Check(&check<api::RegionRequest>),
                            Check(&check<api::Region>),
                            Check(&check<api::RegionList>),
                            Check(&check<api::Placement>),
                            Check(&check<api::ModelConstants>),
                            Check(&check<api::Event>),
                            Check(&check<api::EventList>),
                            Check(&check<api::PeerLink>),
                            Check(&check<api::PeerLinkList>),
                            Check(&check<api::OptimizerSettings>),
                            Check(&check<api::InitializerSettings>),
                            Check(&check<api::ProbeRequest>),
                            Check(&check<api::ProbeReport>),
                            Check(&check<api::MeasuredLinkList>),
                            Check(&check<api::SimulationRequest>),
                            Check(&check<api::SimulationAnswer>),
                            Check(&check<api::TensorInfo>),
                            Check(&check<api::TensorList>)};

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  auto const kind = input.byte();
  auto const unknown = (kind & 0x80) != 0 ? UnknownFields::ignore : UnknownFields::refuse;
  checks.at((kind & 0x7f) % checks.size())(input.text(), unknown);
  return 0;
}
