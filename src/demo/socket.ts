/** `wss://{host}/responses`: a frame of JSON for each request, and one for each event of its answer. */
import type { SeenRequest } from "./state";
import { list, parse, record } from "./wire";

/** One connection. */
export interface SocketState {
  /** Counted from 1. */
  id: number;
  handshake: SeenRequest;
  /** Aborts when the connection ends. */
  gone: AbortController;
}

export type DemoSocket = Bun.ServerWebSocket<SocketState>;

export const isHandshake = (request: Request): boolean =>
  request.method === "GET" &&
  new URL(request.url).pathname === "/responses" &&
  /^websocket$/i.test(request.headers.get("upgrade") ?? "");

/** A frame as the same request over HTTP; undefined if it is none. */
export function requestIn({ id, handshake }: SocketState, text: string): SeenRequest | undefined {
  const { type, initiator, ...body } = record(parse(text));
  if (type !== "response.create" || "stream" in body) return undefined;
  return {
    ...handshake,
    method: "POST",
    headers: { ...handshake.headers, "content-type": "application/json", "x-initiator": String(initiator) },
    body: { ...body, stream: true },
    bytes: new TextEncoder().encode(text),
    socket: id,
  };
}

/** Sends the answer to a request. A connection whose answer breaks off is broken too. */
export async function sendAnswer(socket: DemoSocket, response: Response, errors: "status" | "nested"): Promise<void> {
  if (!response.ok) return sendError(socket, response, errors);
  const decoder = new TextDecoder();
  let held = "";
  try {
    for await (const piece of response.body ?? []) {
      const frames = (held + decoder.decode(piece, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
      held = frames.pop() ?? "";
      for (const frame of frames) sendFrame(socket, frame);
    }
  } catch {
    return socket.terminate();
  }
  if (socket.data.gone.signal.aborted || !isDone.has(socket)) socket.close(1011, "the answer ended early");
  isDone.delete(socket);
}

/** Sockets whose present answer has sent its last event. */
const isDone = new WeakSet<DemoSocket>();

const last = /^data: \{"type":"(?:response\.(?:completed|incomplete|failed)|error)"/m;

function sendFrame(socket: DemoSocket, frame: string): void {
  const lines = frame.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice("data: ".length)] : []));
  if (lines.length > 0) socket.sendText(lines.join("\n"));
  if (last.test(frame)) isDone.add(socket);
}

/** The codes of answers that have none of their own. */
const codes: Record<number, string> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  429: "rate_limited",
};

async function sendError(socket: DemoSocket, response: Response, form: "status" | "nested"): Promise<void> {
  const text = await response.text();
  const error = record(record(parse(text)).error);
  const isNamed = Object.keys(error).length > 0;
  if (form === "nested") {
    const { code, message } = isNamed ? error : { code: codes[response.status] ?? "error", message: text.trim() };
    return void socket.sendText(JSON.stringify({ type: "error", error: { code, message } }));
  }
  const named = isNamed ? error : { code: "error", message: text.trim() };
  const headers = Object.fromEntries(list([...response.headers]) as [string, string][]);
  socket.sendText(JSON.stringify({ type: "error", status: response.status, error: named, headers }));
}
