/** An upstream that has changed without notice: `demo: { change: drifted("header") }` or `renamed({ path, member, to })`. */
import type { ChangeAnswer, DemoOptions } from "../../src/demo/state";

export type DriftWay = "event" | "member" | "value" | "header" | "model-field" | "no-usage" | "no-cost" | "no-prices";

interface Drift {
  header?: [name: string, value: string];
  /** Changes JSON, or one event of a stream. */
  text?(text: string, path: string): string;
}

const newEvent = (type: string) => `event: ${type}\ndata: {"type":"${type}","mood":"calm"}\n\n`;

const cost = '"copilot_usage":\\{"total_nano_aiu":[^,]*,"token_details":\\[[^\\]]*\\]\\}';
const statedCost = new RegExp(`,${cost}|${cost},`, "g");

const drifts: Record<DriftWay, Drift> = {
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
  "no-prices": { text: (text, path) => (path === "/models" ? text.replaceAll('"billing":{', '"paying":{') : text) },
  "no-usage": { text: (text) => text.replaceAll('"usage":{', '"uses":{') },
};

/** One member that has another name now. */
export interface Rename {
  /** The path of the requests whose answers have it. */
  path: string;
  /** The end of the member's path, as `usage.prompt_tokens`; `*` is any name. Of a header with fields, `header.field`. */
  member: string;
  to: string;
}

/** New names in all answers, or a part that is gone. */
export const drifted =
  (...ways: DriftWay[]): ChangeAnswer =>
  async (response, path) => {
    const changed = await rewritten(response, (text) =>
      ways.reduce((sum, way) => drifts[way].text?.(sum, path) ?? sum, text),
    );
    for (const way of ways) {
      const { header } = drifts[way];
      if (header) changed.headers.set(...header);
    }
    return changed;
  };

/** The list of models as it was until August 2026 (B), or with the first of the names since then (`mixed`). */
const olderList =
  (names: "B" | "mixed"): ChangeAnswer =>
  async (response, path) => {
    if (path !== "/models" || !response.ok) return response;
    const { data, ...list } = (await response.json()) as { data: Listed[] };
    return Response.json({ ...list, data: data.map((model) => olderModel(model, names)) });
  };

interface Listed {
  capabilities: { limits?: { max_context_window_tokens?: number; max_prompt_tokens?: number } };
  billing: { auto_discount?: number; promo?: object; token_prices: { default: Tier; long_context?: Tier } };
}

interface Tier {
  cache_read_price: number;
  cache_write_1h_price?: number;
  max_prompt_tokens?: number;
}

function olderModel({ billing, ...model }: Listed, names: "B" | "mixed") {
  const { auto_discount: _, promo: __, token_prices, ...others } = billing;
  const { default: base, long_context: long = base, ...prices } = token_prices;
  const { max_context_window_tokens: context = 0, max_prompt_tokens } = model.capabilities.limits ?? {};
  // A long prompt had a tier of its own also where it costs the same.
  const isTiered = context >= 1_000_000;
  const tier = ({ cache_read_price, cache_write_1h_price: _, max_prompt_tokens: __, ...tier }: Tier, end?: number) => ({
    ...tier,
    [names === "B" ? "cache_price" : "cache_read_price"]: cache_read_price,
    ...(isTiered && { context_max: end }),
  });
  const tiers = {
    default: tier(base, base.max_prompt_tokens ?? 200_000),
    ...(isTiered && { long_context: tier(long, max_prompt_tokens) }),
  };
  return { ...model, billing: { ...others, token_prices: { ...prices, ...tiers } } };
}

/** Every form of the model list that was seen, the oldest first. */
export const lists = {
  A: { generation: "A" },
  B: { generation: "C", change: olderList("B") },
  mixed: { generation: "C", change: olderList("mixed") },
  C: { generation: "C" },
} satisfies Record<string, DemoOptions>;
export type ListName = keyof typeof lists;

/**
 * The member has another name from the moment at which `rename` is set.
 * @param before What has changed already.
 */
export const renamed =
  (current: { rename?: Rename }, before?: ChangeAnswer): ChangeAnswer =>
  async (answer, path) => {
    const { rename } = current;
    const response = (await before?.(answer, path)) ?? answer;
    if (rename?.path !== path) return response;
    const changed = await rewritten(response, (text) => renamedText(text, rename));
    renameInHeaders(changed.headers, rename);
    return changed;
  };

async function rewritten(response: Response, change: (text: string) => string): Promise<Response> {
  const isStream = /event-stream/.test(response.headers.get("content-type") ?? "");
  const body = isStream && response.body ? response.body.pipeThrough(byEvents(change)) : change(await response.text());
  const changed = new Response(body, response);
  changed.headers.delete("content-length");
  return changed;
}

/** JSON, or one event of a stream. */
function renamedText(text: string, { member, to }: Rename): string {
  const steps = member.split(".");
  const change = (json: string) => {
    try {
      return JSON.stringify(renamedIn(JSON.parse(json), steps, to));
    } catch {
      return json; // `[DONE]`
    }
  };
  return /^(?:event|data):/m.test(text)
    ? text.replace(/^data: ?(.*)$/gm, (_, json: string) => `data: ${change(json)}`)
    : change(text);
}

/** Lists are passed through: their items are where they are. */
function renamedIn(value: unknown, steps: readonly string[], to: string, trail: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item) => renamedIn(item, steps, to, trail));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const own = [...trail, name];
      const end = own.slice(-steps.length);
      const isIt = end.length === steps.length && steps.every((step, at) => step === "*" || step === end[at]);
      return [isIt ? to : name, renamedIn(inner, steps, to, own)];
    }),
  );
}

function renameInHeaders(headers: Headers, { member, to }: Rename): void {
  const [name = "", field = ""] = member.split(".");
  const value = headers.get(name);
  if (value === null) return;
  headers.set(name, value.replace(new RegExp(`(^|&)${field}=`), `$1${to}=`));
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
