/**
 * Writes the answers of /responses. Each event has a new id for its item; clients can match events by `output_index` only.
 */
import { copilotUsage, streamSnapshots } from "./accounting";
import type { ReplyContext } from "./model-call";
import type { Call } from "./parse-prompt";
import { pieces } from "./scripted-replies";
import { encrypt, seal } from "./signatures";
import type { Frame, Interjections } from "./stream";
import { eventText, type Json, list, randomId, record, records } from "./wire";

const stopped = { code: "server_error", message: "DEMO: the model stopped working" };

export const responseInterjections: Interjections = {
  error: eventText("error", { ...stopped, param: null, sequence_number: 99 }),
  failed: eventText("response.failed", {
    sequence_number: 99,
    response: { object: "response", status: "failed", error: stopped, output: [], usage: null },
  }),
  ping: eventText("ping", {}),
};

/** The full answer: its id and its items' ids are opaque, `output_text` is null. */
export const wholeResponse = (context: ReplyContext): Json => closing(context, items(context), responseId(context));

export function* responseFrames(context: ReplyContext): Generator<Frame> {
  let sequence_number = 0;
  const frame = (part: Frame["part"], type: string, fields: Json): Frame => ({
    part,
    text: eventText(type, { sequence_number: sequence_number++, ...fields }),
  });
  const made = items(context);
  const id = responseId(context);
  yield frame("opening", "response.created", { response: envelope(context, id, "in_progress") });
  yield frame("opening", "response.in_progress", { response: envelope(context, id, "in_progress") });
  for (const [output_index, { id, begun, events, done }] of made.entries()) {
    const fresh = () => seal({ id, login: context.account.login });
    yield frame("content", "response.output_item.added", { output_index, item: { ...begun, id: fresh() } });
    for (const [type, fields] of events)
      yield frame("content", `response.${type}`, { item_id: fresh(), output_index, ...fields });
    const last = output_index === made.length - 1;
    const item = { ...done, id: fresh() };
    yield frame(last ? "finish" : "content", "response.output_item.done", { output_index, item });
  }
  const response = closing(context, made, id);
  yield frame("end", `response.${response.status}`, {
    response,
    copilot_quota_snapshots: streamSnapshots(context.demo, context.account),
    copilot_usage: response.copilot_usage,
  });
}

const responseId = ({ account }: ReplyContext) => seal({ id: randomId("resp_", 40), login: account.login });

/** One item of the output, in full or as events. */
interface Item {
  /** The true one; each event and each answer shows it in another form. */
  id: string;
  begun: Json;
  events: [type: string, fields: Json][];
  done: Json;
}

const newId = (prefix: string) => randomId(prefix, 40).toLowerCase();

function items(context: ReplyContext): Item[] {
  const { reply, body, model } = context;
  const isAsked = context.isNewest && records(body.input).some(({ type }) => type === "compaction_trigger");
  // The small model answers with two items.
  if (isAsked) return Array.from({ length: model.traits.has("two-summaries") ? 2 : 1 }, () => compactionItem(context));
  return [
    ...(reply.thinking.length > 0 ? [reasoningItem(context)] : []),
    ...(reply.search ? [searchItem(context, reply.search)] : []),
    ...(reply.calls.length === 0 || reply.text.length > 0 ? [messageItem(context)] : []),
    ...reply.calls.map(callItem),
  ];
}

/** Without `reasoning.summary` the summary is empty; without `include` there is no encrypted content. */
function reasoningItem({ reply, body, account: { login } }: ReplyContext): Item {
  const id = newId("rs_");
  const text = reply.thinking.join("");
  const isShown = record(body.reasoning).summary != null && !reply.redacted;
  const isIncluded = list(body.include).includes("reasoning.encrypted_content");
  const part = { type: "summary_text", text };
  const at = { summary_index: 0 };
  return {
    id,
    begun: { type: "reasoning", summary: [] },
    events: isShown
      ? [
          ["reasoning_summary_part.added", { ...at, part: { ...part, text: "" } }],
          ...deltas("reasoning_summary_text", at, reply.thinking),
          ["reasoning_summary_text.done", { ...at, text }],
          ["reasoning_summary_part.done", { ...at, part }],
        ]
      : [],
    done: {
      type: "reasoning",
      summary: isShown ? [part] : [],
      ...(isIncluded && { encrypted_content: encrypt({ id, login }, text) }),
    },
  };
}

const deltas = (name: string, fields: Json, pieces: string[]): Item["events"] =>
  pieces.map((delta) => [`${name}.delta`, { ...fields, delta }]);

/** The conversation in short, readable for this upstream with the same account. */
function compactionItem({ reply, account: { login } }: ReplyContext): Item {
  const id = newId("cmp_");
  const item = { type: "compaction", encrypted_content: encrypt({ id, login }, reply.text.join("")) };
  return { id, begun: item, events: [], done: item };
}

function searchItem({ body }: ReplyContext, query: string): Item {
  const isListed = list(body.include).includes("web_search_call.action.sources");
  const sources = [{ type: "url", url: citation("").url }];
  const call = { type: "web_search_call", action: { type: "search", query, ...(isListed && { sources }) } };
  return {
    id: newId("ws_"),
    begun: { ...call, status: "in_progress" },
    events: ["in_progress", "searching", "completed"].map((state) => [`web_search_call.${state}`, {}]),
    done: { ...call, status: "completed" },
  };
}

function messageItem({ reply, model }: ReplyContext): Item {
  const text = reply.text.join("");
  const isRefusal = reply.finish === "refusal";
  const annotations = reply.search ? [citation(text)] : [];
  const part = isRefusal
    ? { type: "refusal", refusal: text }
    : { type: "output_text", text, annotations, logprobs: [] };
  const at = { content_index: 0 };
  const common = {
    type: "message",
    role: "assistant",
    ...(model.traits.has("phases") && { phase: reply.calls.length > 0 ? "commentary" : "final_answer" }),
  };
  const filler = (delta: string) => ({ logprobs: [], obfuscation: "x".repeat(16 - (delta.length % 16)) });
  const written: Item["events"] = isRefusal
    ? [...deltas("refusal", at, reply.text), ["refusal.done", { ...at, refusal: text }]]
    : [
        ...reply.text.flatMap((delta) => deltas("output_text", { ...at, ...filler(delta) }, [delta])),
        ...annotations.map((annotation, annotation_index): Item["events"][number] => [
          "output_text.annotation.added",
          { ...at, annotation_index, annotation },
        ]),
        ["output_text.done", { ...at, text, logprobs: [] }],
      ];
  const empty = isRefusal ? { refusal: "" } : { text: "", annotations: [] };
  return {
    id: newId("msg_"),
    begun: { ...common, status: "in_progress", content: [] },
    events: [
      ["content_part.added", { ...at, part: { ...part, ...empty } }],
      ...written,
      ["content_part.done", { ...at, part }],
    ],
    done: { ...common, status: reply.finish === "length" ? "incomplete" : "completed", content: [part] },
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
function callItem({ tool, input }: Call): Item {
  const [kind, id, member, event, written] =
    tool.kind === "custom"
      ? ["custom_tool_call", "ctc_", "input", "custom_tool_call_input", String(input)]
      : ["function_call", "fc_", "arguments", "function_call_arguments", JSON.stringify(input)];
  const call = {
    type: kind,
    call_id: randomId("call_", 24),
    name: tool.name,
    ...(tool.namespace && { namespace: tool.namespace }),
  };
  return {
    id: newId(id),
    begun: { ...call, [member]: "", status: "in_progress" },
    events: [...deltas(event, {}, pieces(written, 8)), [`${event}.done`, { [member]: written }]],
    done: { ...call, [member]: written, status: "completed" },
  };
}

/** The response in the last event. */
function closing(context: ReplyContext, made: Item[], id: string): Json {
  const { reply, model, account } = context;
  const { input, cacheRead, cacheWrite, output, reasoning } = reply.usage;
  const cut = reply.finish === "length";
  return {
    ...envelope(context, id, cut ? "incomplete" : "completed"),
    incomplete_details: cut ? { reason: "max_output_tokens" } : null,
    output: made.map(({ id, done }) => ({ ...done, id: seal({ id, login: account.login }) })),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
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
