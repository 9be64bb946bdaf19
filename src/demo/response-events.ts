/**
 * Writes the answers of /responses. Each event has a new id for its item; clients can match events by `output_index` only.
 */
import { copilotUsage, streamSnapshots } from "./accounting";
import type { ReplyContext } from "./model-call";
import type { Call } from "./parse-prompt";
import { pieces } from "./scripted-replies";
import { encrypt, seal } from "./signatures";
import type { Frame, Interjections } from "./stream";
import { type Json, list, randomId, record, records } from "./wire";

const stopped = { code: "server_error", message: "DEMO: the model stopped working" };

export const responseInterjections: Interjections = {
  error: frameText("error", { ...stopped, param: null, sequence_number: 99 }),
  failed: frameText("response.failed", {
    sequence_number: 99,
    response: { object: "response", status: "failed", error: stopped, output: [], usage: null },
  }),
  ping: frameText("ping", {}),
};

/** The full answer: its id and its items' ids are opaque, `output_text` is null. */
export const wholeResponse = (context: ReplyContext): Json => closing(context, items(context), responseId(context));

export function* responseFrames(context: ReplyContext): Generator<Frame> {
  let sequence_number = 0;
  const frame = (part: Frame["part"], type: string, fields: Json): Frame => ({
    part,
    text: frameText(type, { sequence_number: sequence_number++, ...fields }),
  });
  const made = items(context);
  const id = responseId(context);
  yield frame("opening", "response.created", { response: envelope(context, id, "in_progress") });
  yield frame("opening", "response.in_progress", { response: envelope(context, id, "in_progress") });
  for (const [output_index, item] of made.entries()) {
    yield frame("content", "response.output_item.added", { output_index, item: item.begun() });
    for (const [type, fields] of item.events())
      yield frame("content", `response.${type}`, { ...item.place(), output_index, ...fields });
    const last = output_index === made.length - 1;
    yield frame(last ? "finish" : "content", "response.output_item.done", { output_index, item: item.done() });
  }
  const response = closing(context, made, id);
  yield frame("end", `response.${response.status}`, {
    response,
    copilot_quota_snapshots: streamSnapshots(context.demo, context.account),
    copilot_usage: response.copilot_usage,
  });
}

function frameText(type: string, fields: Json): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

const responseId = ({ account }: ReplyContext) => seal({ id: randomId("resp_", 40), login: account.login });

/** One item of the output, in full or as events. Each time it has a new id. */
interface Item {
  begun(): Json;
  events(): Iterable<[type: string, fields: Json]>;
  done(): Json;
  place(): Json;
}

function items(context: ReplyContext): Item[] {
  const { reply, body, model } = context;
  const isAsked = context.isNewest && records(body.input).some(({ type }) => type === "compaction_trigger");
  // The small model answers with two items.
  if (isAsked)
    return model.id.includes("mini") ? [compactionItem(context), compactionItem(context)] : [compactionItem(context)];
  return [
    ...(reply.thinking.length > 0 ? [reasoningItem(context)] : []),
    ...(reply.search ? [searchItem(context, reply.search)] : []),
    ...(reply.calls.length === 0 || reply.text.length > 0 ? [messageItem(context)] : []),
    ...reply.calls.map((call) => callItem(context, call)),
  ];
}

function identity({ account }: ReplyContext, prefix: string) {
  const id = randomId(prefix, 40).toLowerCase();
  const fresh = () => seal({ id, login: account.login });
  return { id, fresh, place: () => ({ item_id: fresh() }) };
}

/** Without `reasoning.summary` the summary is empty; without `include` there is no encrypted content. */
function reasoningItem(context: ReplyContext): Item {
  const { id, fresh, place } = identity(context, "rs_");
  const { reply, body, account } = context;
  const thought = reply.thinking.join("");
  const shown = record(body.reasoning).summary != null && !reply.redacted;
  const included = list(body.include).includes("reasoning.encrypted_content");
  const summary = { type: "summary_text", text: thought };
  return {
    place,
    begun: () => ({ type: "reasoning", id: fresh(), summary: [] }),
    *events() {
      if (!shown) return;
      const at = { summary_index: 0 };
      yield ["reasoning_summary_part.added", { ...at, part: { type: "summary_text", text: "" } }];
      for (const delta of reply.thinking) yield ["reasoning_summary_text.delta", { ...at, delta }];
      yield ["reasoning_summary_text.done", { ...at, text: thought }];
      yield ["reasoning_summary_part.done", { ...at, part: summary }];
    },
    done: () => ({
      type: "reasoning",
      id: fresh(),
      summary: shown ? [summary] : [],
      ...(included && { encrypted_content: encrypt({ id, login: account.login }, thought) }),
    }),
  };
}

/** The conversation in short, readable for this upstream with the same account. */
function compactionItem(context: ReplyContext): Item {
  const { id, fresh, place } = identity(context, "cmp_");
  const { reply, account } = context;
  const content = { encrypted_content: encrypt({ id, login: account.login }, reply.text.join("")) };
  return {
    place,
    begun: () => ({ type: "compaction", id: fresh(), ...content }),
    events: () => [],
    done: () => ({ type: "compaction", id: fresh(), ...content }),
  };
}

function searchItem(context: ReplyContext, query: string): Item {
  const { fresh, place } = identity(context, "ws_");
  const isListed = list(context.body.include).includes("web_search_call.action.sources");
  const sources = [{ type: "url", url: citation("").url }];
  const action = { type: "search", query, ...(isListed && { sources }) };
  return {
    place,
    begun: () => ({ type: "web_search_call", id: fresh(), status: "in_progress", action }),
    *events() {
      yield ["web_search_call.in_progress", {}];
      yield ["web_search_call.searching", {}];
      yield ["web_search_call.completed", {}];
    },
    done: () => ({ type: "web_search_call", id: fresh(), status: "completed", action }),
  };
}

function messageItem(context: ReplyContext): Item {
  const { fresh, place } = identity(context, "msg_");
  const { reply, model } = context;
  const text = reply.text.join("");
  const refused = reply.finish === "refusal";
  const annotations = reply.search ? [citation(text)] : [];
  const content = refused
    ? { type: "refusal", refusal: text }
    : { type: "output_text", text, annotations, logprobs: [] };
  const common = {
    type: "message",
    role: "assistant",
    ...(model.traits.has("phases") && { phase: reply.calls.length > 0 ? "commentary" : "final_answer" }),
  };
  return {
    place,
    begun: () => ({ ...common, id: fresh(), status: "in_progress", content: [] }),
    *events() {
      const at = { content_index: 0 };
      const start = refused ? { type: "refusal", refusal: "" } : { ...content, text: "", annotations: [] };
      yield ["content_part.added", { ...at, part: start }];
      for (const delta of reply.text)
        yield refused
          ? ["refusal.delta", { ...at, delta }]
          : ["output_text.delta", { ...at, delta, logprobs: [], obfuscation: "x".repeat(16 - (delta.length % 16)) }];
      for (const [annotation_index, annotation] of annotations.entries())
        yield ["output_text.annotation.added", { ...at, annotation_index, annotation }];
      yield refused ? ["refusal.done", { ...at, refusal: text }] : ["output_text.done", { ...at, text, logprobs: [] }];
      yield ["content_part.done", { ...at, part: content }];
    },
    done: () => ({
      ...common,
      id: fresh(),
      status: reply.finish === "length" ? "incomplete" : "completed",
      content: [content],
    }),
  };
}

const citation = (text: string): Json => ({
  type: "url_citation",
  start_index: 0,
  end_index: text.length,
  url: "https://example.com/demo",
  title: "DEMO result",
});

/** Free text for a custom tool, JSON for a function. */
function callItem(context: ReplyContext, { tool, input }: Call): Item {
  const isCustom = tool.kind === "custom";
  const { fresh, place } = identity(context, isCustom ? "ctc_" : "fc_");
  const written = isCustom ? String(input) : JSON.stringify(input);
  const member = isCustom ? "input" : "arguments";
  const event = isCustom ? "custom_tool_call_input" : "function_call_arguments";
  const common = {
    type: isCustom ? "custom_tool_call" : "function_call",
    call_id: randomId("call_", 24),
    name: tool.name,
    ...(tool.namespace && { namespace: tool.namespace }),
  };
  return {
    place,
    begun: () => ({ ...common, id: fresh(), [member]: "", status: "in_progress" }),
    *events() {
      for (const delta of pieces(written, 8)) yield [`${event}.delta`, { delta }];
      yield [`${event}.done`, { [member]: written }];
    },
    done: () => ({ ...common, id: fresh(), [member]: written, status: "completed" }),
  };
}

/** The response in the last event. */
function closing(context: ReplyContext, made: Item[], id: string): Json {
  const { reply, model, effects } = context;
  const { input, cacheRead, output, reasoning } = reply.usage;
  const cut = reply.finish === "length";
  return {
    ...envelope(context, id, cut ? "incomplete" : "completed"),
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    output: effects.noOutput ? [] : made.map((item) => item.done()),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cacheRead },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
    copilot_usage: copilotUsage(model, reply.usage),
  };
}

function envelope({ body, model, demo }: ReplyContext, id: string, status: string): Json {
  const reasoning = record(body.reasoning);
  const text = record(body.text);
  return {
    created_at: Math.floor(demo.now() / 1000),
    id,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    model: model.answersAs,
    object: "response",
    output: [],
    output_text: null,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: reasoning.effort ?? (model.reasons ? "medium" : null), summary: reasoning.summary ?? null },
    safety_identifier: "d".repeat(64),
    service_tier: "priority",
    status,
    store: false,
    temperature: body.temperature ?? 1,
    text: { format: text.format ?? { type: "text" }, verbosity: text.verbosity ?? "medium" },
    tool_choice: body.tool_choice ?? "auto",
    tools: records(body.tools).map(echoTool),
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? "disabled",
    usage: null,
  };
}

/** A function without `strict: false` is returned as strict, with `additionalProperties: false`. */
function echoTool(tool: Json): Json {
  if (tool.type !== "function" || tool.strict === false) return tool;
  return { ...tool, strict: true, parameters: { ...record(tool.parameters), additionalProperties: false } };
}
