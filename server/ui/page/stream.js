// GET /v1/events as they happen: a stream that is read with fetch, because an EventSource cannot send a token.
import {Problem, request} from "/ui/api.js";

const silenceMs = 40000; // the coordinator sends a bookmark every 15 seconds

// One event from the lines between two empty ones; null for comments.
function parse(lines) {
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
  const field = (name) =>
    lines
      .find((line) => line.startsWith(name))
      ?.slice(name.length)
      .trim();
  return data.length ? {id: field("id:"), type: field("event:"), body: JSON.parse(data.join("\n"))} : null;
}

async function* eventsOf(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  signal.addEventListener("abort", () => reader.cancel().catch(() => {}), {once: true});
  let text = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = parse(block.split("\n"));
      if (event) yield event;
    }
  }
}

// Follows for ever. `handlers`: event(body), state("on" | "lost"), begun() when what happened before may have been
// missed, so that everything is to be read again.
export async function follow(since, handlers) {
  let last = null; // the position behind the last event; of another log than the present one it is answered with a reset
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 4000)) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silenceMs);
    try {
      const path = last !== null || since === null ? "/v1/events" : `/v1/events?since=${since}`;
      const headers = {Accept: "text/event-stream", ...(last !== null && {"Last-Event-ID": last})};
      const response = await request(path, {headers, signal: silence.signal});
      handlers.state("on");
      if (last === null && since === null) handlers.begun();
      for await (const {id, type, body} of eventsOf(response, silence.signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceMs);
        pauseMs = 250;
        last = id;
        if (type === "reset") handlers.begun();
        else if (type !== "bookmark") handlers.event(body);
      }
    } catch (failure) {
      // The numbers are of another coordinator, or too old: begin with what comes next.
      if (failure instanceof Problem && (failure.status === 410 || failure.status === 400)) since = last = null;
    }
    clearTimeout(timer);
    handlers.state("lost");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
