/** An upstream that has changed without notice: new names in its answers, and a part that is gone. For tests of who notices. */

export const driftWays = ["event", "member", "value", "header", "model-field", "no-usage", "no-cost"] as const;
export type DriftWay = (typeof driftWays)[number];

interface Change {
  header?: [name: string, value: string];
  /** Changes JSON, or one event of a stream. */
  text?(text: string, path: string): string;
}

const newEvent = (type: string) => `event: ${type}\ndata: {"type":"${type}","mood":"calm"}\n\n`;

const cost = '"copilot_usage":\\{"total_nano_aiu":[^,]*,"token_details":\\[[^\\]]*\\]\\}';
const statedCost = new RegExp(`,${cost}|${cost},`, "g");

const changes: Record<DriftWay, Change> = {
  event: {
    text: (text, path) => {
      if (text.includes('"response.created"')) return text + newEvent("response.mood.delta");
      return path === "/v1/messages" && text.includes('"message_start"') ? text + newEvent("mood") : text;
    },
  },
  member: { text: (text) => text.replace(/"usage":\{(?=")/g, '"usage":{"mood_tokens":1,') },
  value: {
    text: (text) =>
      text
        .replace('"finish_reason":"stop"', '"finish_reason":"satisfied"')
        .replace('"stop_reason":"end_turn"', '"stop_reason":"satisfied"')
        .replaceAll('"type":"output_text"', '"type":"output_song"'),
  },
  header: { header: ["x-copilot-mood", "calm"] },
  "model-field": {
    text: (text, path) =>
      path === "/models" ? text.replace(/"supports":\{(?=")/g, '"supports":{"telepathy":true,') : text,
  },
  "no-cost": { text: (text) => text.replace(statedCost, "") },
  "no-usage": { text: (text) => text.replaceAll('"usage":{', '"uses":{') },
};

/** The answer as the changed upstream gives it. */
export async function drifted(response: Response, path: string, ways: readonly DriftWay[]): Promise<Response> {
  if (ways.length === 0) return response;
  const change = (text: string) => ways.reduce((sum, way) => changes[way].text?.(sum, path) ?? sum, text);
  const isStream = /event-stream/.test(response.headers.get("content-type") ?? "");
  const body = isStream && response.body ? response.body.pipeThrough(byEvents(change)) : change(await response.text());
  const changed = new Response(body, response);
  changed.headers.delete("content-length");
  for (const way of ways) {
    const { header } = changes[way];
    if (header) changed.headers.set(...header);
  }
  return changed;
}

function byEvents(change: (event: string) => string): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let held = "";
  return new TransformStream({
    transform(chunk, controller) {
      const events = (held + decoder.decode(chunk, { stream: true })).split(/(?<=\n\n)/);
      held = events.at(-1)!.endsWith("\n\n") ? "" : events.pop()!;
      for (const event of events) controller.enqueue(encoder.encode(change(event)));
    },
    flush(controller) {
      if (held !== "") controller.enqueue(encoder.encode(change(held)));
    },
  });
}
