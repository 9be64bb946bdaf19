/** One request to a model, from its headers to the end of its answer, for all three dialects. */
import { chargeRequest, chargeTokens, quotaHeaders } from "./accounting";
import type { DemoAccount } from "./accounts";
import { autoModelFor } from "./auto";
import { type Effects, readEffects } from "./faults";
import type { Model } from "./model";
import { modelFor } from "./models";
import { type ModelReply, type ModelRequest, presentTools, type Reading, readRequest } from "./parse-prompt";
import { useCache } from "./prompt-cache";
import { answer, promptTokens } from "./scripted-replies";
import type { Arrival, DemoState } from "./state";
import { deliver, type Frame, type Interjections, nap } from "./stream";
import { invalid, type Json, plain, type Refusal, record, refusal, string } from "./wire";

/** The input of a dialect's validation rules. */
export interface View {
  body: Json;
  ask: ModelRequest;
  model: Model;
  account: DemoAccount;
  headers: Record<string, string>;
  /** It refuses and accepts what the upstream does since the summer of 2026. */
  isNewest: boolean;
}

/** The input of the code that writes a dialect's answers. */
export interface ReplyContext extends View {
  demo: DemoState;
  effects: Effects;
  reply: ModelReply;
}

/** A refusal; anything else if a rule is kept. */
export type Objection = Refusal | undefined | false | "";

export interface Dialect {
  path: string;
  /** Never refuses: it leaves out what it cannot read. */
  read(body: Json): Reading;
  /** Checked in order; the first refusal is the answer. */
  rules(view: View): Iterable<Objection>;
  whole(context: ReplyContext): Json;
  frames(context: ReplyContext): Iterable<Frame>;
  interjections: Interjections;
}

export async function answerModelCall(arrival: Arrival, account: DemoAccount, dialect: Dialect): Promise<Response> {
  const { demo, signal } = arrival;
  const { headers } = arrival.seen;
  const body = record(arrival.seen.body);
  const ask = readRequest(body, dialect.read(body));
  const asked = ask.results.length > 0 ? "" : ask.prompt;
  const effects = readEffects(demo, asked, account.login, dialect.path);
  if (effects.slowHeaders) await nap(effects.slowHeaders * 1000, signal);
  if (signal.aborted) return new Response(null, { status: 499 });
  if (effects.instead) throw effects.instead;

  const named = typeof body.model === "string" ? body.model : undefined;
  const chosen = autoModelFor(demo, account, headers, named, dialect.path);
  const model = modelFor(demo, account, chosen ?? ask.model, dialect.path);
  const view: View = { body, ask, model, account, headers, isNewest: demo.generation !== "A" };
  for (const objection of dialect.rules(view)) if (objection) throw objection;
  chargeRequest(demo, account, model, headers["x-initiator"]);
  const reply = answer(ask, model, effects);
  Object.assign(reply.usage, useCache(demo, account, model, ask, reply.usage.input));
  chargeTokens(demo, account, model, reply.usage);

  const context: ReplyContext = { ...view, demo, effects, reply };
  const quota = quotaHeaders(demo, account);
  const send = (frames: Iterable<Frame>) =>
    deliver(frames, dialect.interjections, effects, { pace: demo.pace, signal, left: arrival.hold() });
  if (ask.stream)
    return new Response(send(dialect.frames(context)), { headers: { "content-type": "text/event-stream", ...quota } });
  const text = damaged(JSON.stringify(dialect.whole(context)), dialect.interjections, effects);
  return new Response(effects.midway || effects.chop ? send(inParts(text)) : text, {
    headers: { "content-type": "application/json; charset=utf-8", ...quota },
  });
}

/** A full answer, with the directives that change its text. */
function damaged(text: string, { error }: Interjections, effects: Effects): string {
  if (effects.empty) return "";
  if (effects.firstError) return error.replace(/^(event: .*\n)?data: /, "");
  return effects.midway === "broken" ? text.slice(0, -2) : text;
}

/** Whether the answer is to be cut, delayed or sent in small pieces. */
function* inParts(text: string): Generator<Frame> {
  const size = Math.ceil(text.length / 8);
  for (let start = 0; start < text.length; start += size)
    yield { part: "content", text: text.slice(start, start + size) };
}

/** Rules that more than one dialect has. */
export const modelRules = {
  /** Images need a header that announces them; the error does not say so. */
  imagesAnnounced: ({ ask, headers }: View) =>
    ask.images > 0 && headers["copilot-vision-request"] !== "true" && plain(400, "Bad Request"),
  imagesSeen: ({ ask, model }: View) =>
    ask.images > 0 &&
    !model.traits.has("vision") &&
    refusal(400, "invalid_request_body", "image inputs are not supported by this model"),
  toolCount: ({ ask: { tools } }: View) => {
    const { length } = presentTools(tools);
    return length > 128 && invalid("invalid_request_body", `too many tools: ${length}, the maximum is 128`, "tools");
  },
  toolNames: ({ ask: { tools } }: View) => {
    const bad = tools.find(({ name }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
    const words = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
    return bad && invalid("invalid_request_body", `Invalid tool name '${bad.name}'. ${words}`, "tools");
  },
  choiceOffered: ({ ask: { choice, tools } }: View) =>
    typeof choice === "object" &&
    !tools.some(({ name }) => name === choice.name) &&
    invalid("invalid_request_body", `Tool choice '${choice.name}' not found in 'tools' parameter.`, "tool_choice"),
  effortKnown: ({ ask: { effort }, model: { id, efforts } }: View) => {
    const words = `Supported values are: ${efforts.map((value) => `'${value}'`).join(", ")}.`;
    return (
      effort !== undefined &&
      efforts.length > 0 &&
      !efforts.includes(effort) &&
      invalid("unsupported_value", `Unsupported value: '${effort}' is not supported with the '${id}' model. ${words}`)
    );
  },
  promptFits: ({ ask, model: { id, limits } }: View) => {
    const count = promptTokens(ask, id);
    const words = `prompt token count of ${count} exceeds the limit of ${limits?.prompt}`;
    return limits && count > limits.prompt && invalid("model_max_prompt_tokens_exceeded", words);
  },
} satisfies Record<string, (view: View) => Objection>;

/** OpenAI's models answer with an object only. @param format The name that the request gives the schema. */
export function schemaObjection(schema: unknown, name: unknown, param: string): Refusal | false {
  const { type } = record(schema);
  const found = type === undefined ? "None" : Array.isArray(type) ? JSON.stringify(type) : string(type);
  return (
    type !== "object" &&
    refusal(
      400,
      "invalid_json_schema",
      `Invalid schema for response_format '${string(name)}': schema must be a JSON Schema of 'type: "object"', got 'type: "${found}"'.`,
      { param, type: "invalid_request_error" },
    )
  );
}
