#include "http/routing/problem_pages.hpp"

#include <array>

namespace chorus::http {
namespace {

using boost::asio::awaitable;

using enum ProblemCode;

constexpr std::size_t codes = static_cast<std::size_t>(rows_exhausted) + 1;
constexpr std::size_t page_columns = 100;

struct Page {
  ProblemCode code;
  std::string_view cause;
  std::string_view remedy;
};

// In the order of ProblemCode.
constexpr std::array<Page, codes> pages{{
    {not_leader, "Several coordinators run, and this one is a standby.",
     "Ask again at the URL in Location; clients that follow redirects do so by themselves (curl --location-trusted, "
     "which keeps the token)."},
    {bad_request, "The request is not valid HTTP, or a header field or query parameter cannot be read.",
     "The detail says what is wrong, and where. Correct it and ask again; /openapi.json has every field and "
     "parameter."},
    {malformed_json, "The body is not JSON: a syntax error, a key that occurs twice, or nesting beyond 16 levels.",
     "Send JSON (RFC 8259), written by a library rather than by hand; the detail says where it stops being "
     "that."},
    {unauthorized,
     "The request carries no token, or one that is unknown here, was revoked or has expired: the detail "
     "says which.",
     "Send a token as `Authorization: Bearer TOKEN`; `chorus token create` makes one: docs/guides/security.md."},
    {forbidden,
     "The role of the token does not allow this (the detail has both roles), the token of a run is another "
     "one, the certificate is for another name, a web page of another origin has asked, or a worker was to "
     "measure the way to an address that its coordinator does not know.",
     "Use a token of the role that the detail names; start the service with `--cors-origin` for the pages "
     "that may ask; have a certificate made for the name that is called."},
    {not_found, "No route of this service has this path, or nothing has this name.",
     "GET /v1 lists the routes of a service, and says whether it is a coordinator or a worker."},
    {unknown_worker, "No worker has joined under this id, or its lease has passed.",
     "GET /v1/workers lists those that are known. A worker that reads this joins again by itself."},
    {unknown_group, "No group has this name; at a worker: none of which it is a member.",
     "Make it with PUT /v1/groups/{name}, body {\"workers\":[ids]} or {\"size\":n}; GET /v1/groups lists "
     "those that are there."},
    {unknown_tensor, "A rank's worker holds no tensor of this name; `ranks` names those that lack it.",
     "Upload it with PUT /v1/tensors/{name} at each of those workers."},
    {unknown_collective, "No such collective runs, and it is not among the last ones that ended.",
     "GET /v1/collectives lists those that are known; read the result of one soon after its end, or launch "
     "it with `?wait=`."},
    {unknown_run, "The worker does not know this run: it has ended long ago, or never began there.",
     "GET /v1/flight at the worker lists its last runs, GET /v1/progress those that are under way."},
    {unknown_region, "No client has registered a region of this name at this worker.",
     "Register it with PUT /v1/shm/system/{name}, body key, offset and bytes; memory of a GPU with PUT "
     "/v1/shm/cuda/{name}."},
    {unknown_parameter, "No parameter has this name.",
     "Make it with PUT /v1/parameters/{name} at the coordinator; GET /v1/parameters lists those that are "
     "there."},
    {method_not_allowed, "The path exists, with other methods.", "Use one of those that the Allow field names."},
    {request_timeout,
     "The client sent too slowly, or stopped in the middle of a request: a header takes at most 5 s, a body "
     "may not pause for more than 10 s.",
     "Ask again. Where it happens again, look at the network between the two, and whether the client says a "
     "longer Content-Length than it sends."},
    {mismatch,
     "The ranks hold different things under one name: dtype or shape differ, or a tensor changed "
     "between admission and launch. `errors` names rank, field and both values. Nothing was changed.",
     "Upload tensors that agree, and launch again."},
    {epoch_fenced, "The request speaks for an epoch or an incarnation that has been replaced.",
     "Read the group or the worker again, and ask with what it says now."},
    {plan_mismatch, "The ranks of one run have generated different plans, or have called different operations.",
     "Check that all workers are of one release (`chorus doctor`), and call the same operations in the same "
     "order on every rank."},
    {group_broken,
     "A member of this epoch was lost, a call within it has failed, or a call without a name came after one whose "
     "client had gone without the answer. Tensors are as they were before the failure.",
     "PUT /v1/groups/{name} makes a new epoch, with the same or with other members."},
    {not_enough_workers, "More members were asked for than are ready.",
     "GET /v1/workers shows who is. Start more workers, or ask for fewer."},
    {already_exists, "The name is taken by something else.", "Choose another name, or delete what has it."},
    {busy, "A collective is writing this tensor now, or what was asked for is being changed by another request.",
     "Wait for that to end, and ask again."},
    {cancelled, "It was cancelled before it ended. Tensors are as they were.",
     "Launch it again if it is wanted after all."},
    {out_of_order,
     "The sequence of a call or a push, or the clock of a push, cannot come now: others before it are missing, or "
     "its turn has passed.",
     "The detail says which number is next: that one comes first. A client that begins anew pushes under another "
     "Chorus-Incarnation, and asks GET /v1/groups/{name} at its worker for the next sequence of its calls."},
    {region_in_use, "Tensors lie in this region, or are being read from it; the detail names some.",
     "Delete them, or PUT them elsewhere; then forget the region."},
    {region_damaged,
     "A client's shared memory object has become shorter than the region that was registered. What was read "
     "from it may be zeros; the collective failed. Tensors that do not lie in it are as they were.",
     "Make the object anew, register it and place the tensors again."},
    {compacted, "The events after `since` (or Last-Event-ID) are no longer all kept.",
     "Read the state again (workers, groups, collectives), then follow from the newest event: the detail "
     "says its number."},
    {length_required, "The body has no Content-Length, and this request needs one.",
     "Send it: `curl --data-binary @FILE` does. Transfer-Encoding: chunked is enough for "
     "tensors, and for pushes of parameters that are not compressed."},
    {precondition_failed, "If-Match or If-None-Match does not hold: the tensor has changed.",
     "Read it again, and repeat the change with its new ETag if it is still wanted."},
    {payload_too_large, "The body is larger than this route accepts; the detail has the limit.",
     "Send less: several requests, or a list in parts. A tensor is limited by the worker's --tensor-limit-bytes, "
     "and by --memory-limit-bytes, which all tensors share."},
    {unsupported_media_type, "The body has a Content-Type or Content-Encoding that this route does not read.",
     "Send bytes as application/octet-stream and messages as application/json, neither of them compressed."},
    {range_not_satisfiable, "The Range lies outside of what is there, or has several ranges, which are not served.",
     "Ask for one range, `bytes=a-b`, within the length that HEAD tells."},
    {misdirected, "The worker does not own this shard, or no longer.",
     "GET /v1/parameters/{name} at the coordinator says who does: ask that worker."},
    {unknown_host,
     "The request calls this service by a name that is not its own: a web page of a stranger might do that.",
     "If the name is right, start the service with `--allowed-host NAME`; addresses and localhost always "
     "work."},
    {invalid_field, "The JSON is well-formed, but a field is unknown, missing, of the wrong type or out of range.",
     "`errors` holds a JSON pointer to each of them and what was expected: correct those."},
    {length_mismatch, "The length of the body is not what shape and dtype ask for.",
     "Send shape x dtype bytes, little-endian and row-major, or correct Tensor-Shape and Tensor-Dtype; the "
     "detail has both lengths."},
    {digest_mismatch,
     "Content-Digest, or the checksum of a request between workers, does not fit the body; or, of a "
     "collective, the results of the ranks differ. The latter is never committed: it means memory, network or "
     "software corrupted data on the ranks named.",
     "Send it again, or launch it again. Where it happens again, take the hosts named out and test their "
     "memory."},
    {idempotency_reused, "This Idempotency-Key was used with another body.", "Draw a new key for a new request."},
    {non_finite,
     "The gradient has a NaN or an infinity, and the parameter was made with nonfinite: reject. Nothing of "
     "it was applied; its sequence number is still the next one.",
     "Push a finite gradient under the same number, or make the parameter with nonfinite: zero or accept."},
    {rate_limited, "More requests, or more wrong tokens, come from this address than are allowed.",
     "Ask again after as many seconds as the Retry-After field says; --rate-limit sets how many are "
     "allowed."},
    {header_too_large, "The header of the request is longer than 8 KiB.",
     "Send fewer and shorter fields: cookies and long tokens are what usually fills it."},
    {internal, "A defect of the service, or no memory is left for it.",
     "Look in its log, which says why. Report it with the detail and the log."},
    {device_failed,
     "A GPU of the worker refused a piece of work, or is lost: the detail says which one, and what the driver says. "
     "Tensors are as they were.",
     "Look at the host's `nvidia-smi` and kernel log. A worker whose GPU is lost is not ready (/readyz says why): "
     "start it again, or without that GPU (`--gpus`)."},
    {memory_damaged,
     "Somebody has truncated the file of the memory that this worker shares with others on its host. What its tensors "
     "and shards were is lost; nothing of it is given out.",
     "Start the worker again: until then it is not ready (/readyz says why). Look for what cleans /dev/shm."},
    {unsupported,
     "It has a name in Chorus but is not in this release, or this service was not started with the flag "
     "that it needs.",
     "The detail says what there is instead, or which flag is missing."},
    {peer_lost,
     "A worker died, or became unreachable, during a collective. `ranks` names it. No tensor of a surviving "
     "rank has changed unless the detail says that the commit had begun.",
     "PUT the group again and repeat."},
    {corrupt_frame,
     "A frame between two workers did not fit its checksum: bytes were changed by the network, by what is "
     "between the two, or in memory. `ranks` names both. Nothing was committed: tensors are as they were, "
     "unless it ran in place.",
     "Repeat it. Where it happens again, look at that path (chorus_link_errors_total, kind corrupt)."},
    {worker_unreachable, "A worker did not answer at the address that it advertised.",
     "Check --advertise of the worker, name resolution and firewalls between the two; `chorus doctor` tells "
     "who reaches whom."},
    {unavailable,
     "The service is stopping or at a limit, the coordinator's journal cannot be written, or a shard of a parameter "
     "waits "
     "for a worker that is silent.",
     "Ask again after as many seconds as the Retry-After field says; the detail names the limit, or the worker that is "
     "waited for."},
    {parameter_lost, "The processes of all workers that had this shard have ended, or the parameter was given up.",
     "PUT the parameter again with recreate: true, and with checkpoint if there is one; with replicas: 2 it survives "
     "one "
     "worker."},
    {log_damaged,
     "A worker started again, and what its --log-directory has of this shard was changed on the disk: the "
     "detail names the file and the place. Nothing of it is used.",
     "Bring the file back from a copy and start the worker again, or delete the parameter and make it from "
     "a checkpoint."},
    {interrupted,
     "The coordinator was started again while the collective ran, before it had been decided to commit it. "
     "It was aborted on every rank; tensors are as they were, unless it ran in place.",
     "Launch it again."},
    {deadline_exceeded,
     "It did not end within its timeout_ms. `ranks` names those that the others waited for. Tensors are as "
     "they were.",
     "Look at the ranks named (`chorus doctor`), or give it more time; then launch it again."},
    {rows_exhausted,
     "The push names rows that do not exist yet, and the shard has as many as lazy_rows allows. The shard applied "
     "nothing of it; other shards may have applied their parts, so only the same push may follow.",
     "Go on with a higher incarnation of the client and rows that exist, or make the parameter anew with more "
     "lazy_rows."},
}};

constexpr bool each_is_at_its_place() {
  for (std::size_t i = 0; i < codes; ++i)
    if (pages[i].code != static_cast<ProblemCode>(i)) return false;
  return true;
}
static_assert(each_is_at_its_place());

std::string wrapped(std::string_view text) {
  std::string lines;
  while (text.size() > page_columns) {
    auto const end = text.rfind(' ', page_columns);
    lines += std::string(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return lines + std::string(text) + '\n';
}

awaitable<Response> page(Request const& request, Body&) {
  if (auto const code = parse_problem_code(request.parameter("code")))
    co_return Response::text(200, problem_page(*code));
  co_return Problem(ProblemCode::not_found, "there is no problem of this name");
}

}  // namespace

std::string problem_page(ProblemCode code) {
  auto const& known = kind(code);
  std::string text(known.name);
  text += ": " + std::string(known.title) + "\nstatus " + std::to_string(known.status) + ", ";
  text += known.retryable ? "may succeed when repeated" : "will not succeed when repeated unchanged";
  auto const& [same, cause, remedy] = pages[static_cast<std::size_t>(code)];
  text += "\n\n" + wrapped("Cause: " + std::string(cause));
  return text + "\n" + wrapped("Remedy: " + std::string(remedy));
}

std::string problem_table() {
  std::string rows;
  for (std::size_t i = 0; i < codes; ++i) {
    auto const& known = kind(static_cast<ProblemCode>(i));
    rows += "| `" + std::string(known.name) + "` | " + std::to_string(known.status) + " | " + std::string(known.title) +
            " | " + (known.retryable ? "yes" : "no") + " | " + std::string(pages[i].cause) + " | " +
            std::string(pages[i].remedy) + " |\n";
  }
  return rows;
}

void add_problem_pages(Router& router) { router.add(Method::get, "/problems/{code}", Access::open, page); }

}  // namespace chorus::http
