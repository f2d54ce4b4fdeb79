// A free port on loopback for a service that must be told one, or that is started again where it was.
import {once} from "node:events";
import {createServer} from "node:net";

// Systems hand out ports from 32768 (or 49152) on to whoever does not ask for one: below, nobody has it by chance.
const first = 20000;
const last = 32767;

export async function quietPort() {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first + 1));
    const server = createServer();
    const isTaken = new Promise((resolve) => server.once("error", () => resolve(true)));
    server.listen(port, "127.0.0.1");
    if (await Promise.race([isTaken, once(server, "listening").then(() => false)])) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
