// GET /v1/events as they happen: a stream that is read with fetch, because an EventSource cannot send a token.
import {Problem, request} from "/ui/api.js";

const silenceMs = 40000; // the coordinator sends a bookmark every 15 seconds

// One event from the lines between two empty ones; null for comments.
function parse(lines) {
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
  const type = lines
    .find((line) => line.startsWith("event:"))
    ?.slice(6)
    .trim();
  return data.length ? {type, body: JSON.parse(data.join("\n"))} : null;
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
  let last = since;
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 4000)) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), silenceMs);
    try {
      const path = last === null ? "/v1/events" : `/v1/events?since=${last}`;
      const response = await request(path, {headers: {Accept: "text/event-stream"}, signal: silence.signal});
      handlers.state("on");
      if (last === null) handlers.begun();
      for await (const {type, body} of eventsOf(response, silence.signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), silenceMs);
        pauseMs = 250;
        last = body.sequence;
        if (type !== "bookmark") handlers.event(body);
      }
    } catch (failure) {
      // The numbers are of another coordinator, or too old: begin with what comes next.
      if (failure instanceof Problem && (failure.status === 410 || failure.status === 400)) last = null;
    }
    clearTimeout(timer);
    handlers.state("lost");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
