// What a plan does, round by round: edges, moves, and what each rank holds afterwards. Pure, without the page.

const receives = (move) => move.op === "recv" || move.op === "recv_reduce";

// [{from, to, chunk, chunks, reduces}] of one round: sends with what becomes of them on the other side.
export function movesOf(round) {
  const arrivals = new Map();
  for (const move of round)
    if (receives(move)) {
      const channel = `${move.peer},${move.rank}`;
      if (!arrivals.has(channel)) arrivals.set(channel, []);
      arrivals.get(channel).push(move);
    }
  return round
    .filter((move) => move.op === "send")
    .map((move) => {
      const arrival = arrivals.get(`${move.rank},${move.peer}`)?.shift();
      return {
        from: move.rank,
        to: move.peer,
        chunk: move.chunk,
        target: arrival?.chunk ?? move.chunk,
        chunks: move.chunks,
        reduces: arrival?.op === "recv_reduce",
      };
    });
}

// How many parts the vector is cut into: one more than the highest that is named.
export function chunkCount(rounds) {
  return rounds.reduce(
    (most, round) => round.reduce((high, move) => Math.max(high, move.chunk + move.chunks), most),
    1,
  );
}

// [{from, to, bytes}] over all rounds.
export function edgesOf(rounds, bytes) {
  const each = bytes / chunkCount(rounds);
  const edges = new Map();
  for (const round of rounds)
    for (const move of movesOf(round)) {
      const channel = `${move.from},${move.to}`;
      const edge = edges.get(channel) ?? {from: move.from, to: move.to, bytes: 0};
      edge.bytes += move.chunks * each;
      edges.set(channel, edge);
    }
  return [...edges.values()];
}

// holdings[r][rank][chunk]: how many ranks' contributions are in it after r rounds, of an all_reduce. Null where the moves
// alone do not tell (scratch buffers, strides): then the last state would not be the complete sum.
export function holdingsOf(rounds, ranks) {
  const chunks = chunkCount(rounds);
  if (ranks > 32 || chunks > 64) return null;
  let now = Array.from({length: ranks}, (_, rank) => Array.from({length: chunks}, () => new Set([rank])));
  const counted = (held) => held.map((row) => row.map((set) => set.size));
  const history = [counted(now)];
  for (const round of rounds) {
    const next = now.map((row) => row.slice());
    for (const move of movesOf(round))
      for (let i = 0; i < move.chunks; ++i) {
        const sent = now[move.from][move.chunk + i];
        if (!sent || !next[move.to][move.target + i]) return null;
        next[move.to][move.target + i] = move.reduces
          ? new Set([...next[move.to][move.target + i], ...sent])
          : new Set(sent);
      }
    now = next;
    history.push(counted(now));
  }
  return history.at(-1).every((row) => row.every((size) => size === ranks)) ? history : null;
}
