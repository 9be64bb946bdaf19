/** An exchange in this process, without a server: what its book gets is kept. */
import type { ClientDialect } from "../../src/dialects/hub/conversation";
import type { ReplyEvent } from "../../src/dialects/hub/reply";
import { Exchange } from "../../src/proxy/relay/exchange";
import type { Incoming } from "../../src/proxy/relay/incoming";
import type { RunningRequest } from "../../src/proxy/relay/running-request";

export interface Recorded {
  fixups: string[];
  dropped: string[];
  /** Without the deltas, of which a book keeps nothing. */
  events: ReplyEvent[];
}

const request = new Request("http://localhost", { method: "POST" });
/** Of no socket. */
export const noConnection = {
  isSocket: false,
  peer: null,
  isFromTrustedProxy: false,
  answered() {},
  keepOpen() {},
  streams: () => () => {},
  upgrade: () => false,
};

export function exchangeOf(incoming: Incoming, dialect: ClientDialect): { exchange: Exchange; recorded: Recorded } {
  const recorded: Recorded = { fixups: [], dropped: [], events: [] };
  const addTo = (list: string[]) => (name: string) => void (list.includes(name) || list.push(name));
  const book = {
    addFixup: addTo(recorded.fixups),
    addDropped: addTo(recorded.dropped),
    hints: {},
    setSession() {},
    get isOver() {
      return recorded.events.at(-1)?.type === "finish";
    },
  };
  const addEvent = (event: ReplyEvent) => {
    if (event.type !== "block-delta") recorded.events.push(event);
    return event;
  };
  const running = { book, addEvent } as unknown as RunningRequest;
  return {
    exchange: new Exchange(running, request, { connection: noConnection, key: undefined }, dialect, incoming),
    recorded,
  };
}
