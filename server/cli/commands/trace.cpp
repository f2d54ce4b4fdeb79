// trace: prints a collective over all ranks as a Chrome trace.
#include <memory>
#include <ostream>

#include "server/cli/commands/commands.hpp"
#include "server/cli/connection/client.hpp"

namespace chorus::cli {

void add_trace(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("trace", "Print what every rank did in a collective, as Chrome trace JSON");
  auto const id = std::make_shared<std::string>();
  command.add_option("ID", *id, "of the collective")->required()->type_name("");
  command.footer("chorus trace ID > trace.json, then open the file in ui.perfetto.dev or chrome://tracing.");
  commands.bind(command, [id](Session const& session) {
    Client const client(session);
    auto const trace = client.send({.path = "/v1/collectives/" + percent_encode(*id) + "/trace"});
    if (!trace) return report(session, trace.error());
    session.out << *trace << '\n';
    return ExitCode::ok;
  });
}

}  // namespace chorus::cli
