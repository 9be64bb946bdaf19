/** What a fuzzer sends: bytes that look like streams, objects that look like messages, and true ones with something wrong. */
import { readdirSync } from "node:fs";
import type { ClientDialect, Dialect } from "../../src/dialects/hub/conversation";
import { hostileReplies, hostileRequests, hostileStreams } from "../support/hostile-shapes";
import fc, { triesOf } from "../support/random";
import { bytesAt, fixtures, hasFixture, jsonAt, wire } from "../support/streams";

export const runs = { numRuns: triesOf(300) };
export const encode = (text: string) => new TextEncoder().encode(text);

/** Bytes that look like an event stream often enough to be dangerous. */
const line = fc.oneof(
  fc.constantFrom(
    "data: [DONE]",
    "data:",
    "data: {}",
    "data: null",
    "data: []",
    "event: error",
    ": x",
    "",
    "\r",
    "id: 1",
    "retry: 1",
    'data: {"type":"message_stop"}',
    'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1}]}}]}',
    'data: {"type":"response.completed"}',
    'data: {"error":null}',
    'data: {"type":"content_block_delta","index":1e9,"delta":{}}',
  ),
  fc.json().map((json) => `data: ${json}`),
  fc.string().map((text) => `data: ${text}`),
  fc.string(),
);
export const stream = fc.oneof(
  fc.array(line, { maxLength: 12 }).map((lines) => encode(`${lines.join("\n\n")}\n\n`)),
  fc.array(line, { maxLength: 12 }).map((lines) => encode(lines.join("\r\n"))),
  fc.uint8Array({ maxLength: 400 }),
);

/** Members a decoder will look at, holding what it does not expect. */
const words = fc.constantFrom(
  ...`
    model messages contents parts functionCall function_response inlineData generationConfig input content role
    type text tools tool_calls function name arguments id index choices delta message usage output item error
    stop_reason finish_reason system tool_choice thinking source max_tokens input_schema tool_use_id call_id
    image_url response_format stop stream __proto__ constructor
  `.match(/\w+/g)!,
);
const values = fc.constantFrom<unknown>(
  ...`
    user assistant tool system text tool_use tool_result thinking image function_call function_call_output
    reasoning message function message_start content_block_start content_block_delta response.created
    response.output_item.added auto
  `.match(/[\w.]+/g)!,
  0,
  -1,
  1e308,
  null,
  true,
  "",
  "\ud800",
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    values,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(words, tie("tree"), { maxKeys: 6 }),
  ),
}));
export const object = fc.dictionary(words, tree, { maxKeys: 8 });

/** Events that a decoder will look at. */
export const likelyStream = fc
  .array(object, { maxLength: 6 })
  .map((events) => encode(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")));

export const odd: fc.Arbitrary<unknown> = fc.oneof(values, tree);

/** Every recorded request, reply or stream of a dialect. */
function recorded(file: string): string[] {
  return readdirSync(fixtures).filter((name) => hasFixture(name, file));
}

/** Something of a hostile shape, small enough to try many. */
const shaped = <T>(shapes: readonly { dialect: ClientDialect; make(bytes: number): T }[], dialect: ClientDialect) =>
  fc
    .tuple(fc.constantFrom(...shapes.filter((shape) => shape.dialect === dialect)), fc.integer({ min: 100, max: 3000 }))
    .map(([{ make }, bytes]) => make(bytes));

/** A request or reply of the dialect, recorded or of a hostile shape, in which one to three values are others, or are gone. */
export function almost(dialect: ClientDialect, what: "request" | "reply"): fc.Arbitrary<Record<string, unknown>> {
  const file = `${dialect}.${what}.json`;
  const seeds: unknown[] = recorded(file).map((name) => jsonAt(name, file));
  const shapes = shaped(what === "request" ? hostileRequests : hostileReplies, dialect);
  return fc
    .tuple(
      fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...seeds) }, { weight: 1, arbitrary: shapes }),
      fc.array(fc.tuple(fc.nat(), odd, fc.boolean()), { minLength: 1, maxLength: 3 }),
    )
    .map(([seed, changes]) => {
      const body = structuredClone(seed) as Record<string, unknown>;
      for (const [at, value, gone] of changes) change(body, at, value, gone);
      return body;
    });
}

/** A stream of the dialect, recorded or of a hostile shape, in which frames are others, gone, twice, swapped, or cut in half. */
export function almostStream(dialect: Dialect): fc.Arbitrary<Uint8Array> {
  const framesIn = (bytes: Uint8Array) => new TextDecoder().decode(bytes).split(/(?<=\n\n)/);
  const seeds = recorded(`${dialect}.stream.txt`).map((name) => framesIn(bytesAt(name, `${dialect}.stream.txt`)));
  const shapes = shaped(hostileStreams, dialect).map((frames) => framesIn(wire(frames)));
  const step = fc.record({
    how: fc.constantFrom("change", "drop", "twice", "swap", "cut"),
    at: fc.nat(),
    inside: fc.nat(),
    value: odd,
    gone: fc.boolean(),
  });
  const all = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...seeds) }, { weight: 1, arbitrary: shapes });
  return fc.tuple(all, fc.array(step, { minLength: 1, maxLength: 3 })).map(([seed, steps]) => {
    const frames = [...seed];
    for (const { how, at, inside, value, gone } of steps) {
      const place = at % frames.length;
      const frame = frames[place] ?? "";
      if (how === "drop") frames.splice(place, 1, "");
      else if (how === "twice") frames.splice(place, 0, frame);
      else if (how === "swap") frames.push(...frames.splice(place, 1));
      else if (how === "cut") frames[place] = frame.slice(0, inside % (frame.length + 1));
      else
        frames[place] = frame.replace(/^data: (\{.*)$/m, (_line, json: string) => {
          const event = parsed(json);
          if (event) change(event, inside, value, gone);
          return `data: ${event ? JSON.stringify(event) : json}`;
        });
    }
    return encode(frames.join(""));
  });
}

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Changes one of all the members within, the deepest included. */
function change(root: object, at: number, value: unknown, gone: boolean): void {
  const places: [object: Record<string, unknown>, key: string][] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    for (const key of Object.keys(node)) {
      places.push([node as Record<string, unknown>, key]);
      walk((node as Record<string, unknown>)[key]);
    }
  };
  walk(root);
  const [object, key] = places[at % places.length] ?? [];
  if (!object || key === undefined) return;
  if (gone) delete object[key];
  else object[key] = value;
}
