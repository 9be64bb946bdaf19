import { betaIn } from "../../../proxy/upstream/copilot/unsupported-params";

/** The ids of the model: as the client sent it, and as it was sent to the upstream. */
interface RequestModels {
  client_model: string | null;
  upstream_model: string | null;
}

/** Upstreams answer with the id of a version, with its date behind it; clients expect the one that they sent. */
const modelName = ({ client_model, upstream_model }: RequestModels): string =>
  hasOneName({ client_model, upstream_model })
    ? `The upstream named the model otherwise in its answer; the response has ${client_model ?? "the ID"}, as it was requested.`
    : `The model was requested as ${client_model}, and sent as ${upstream_model}; the response has the requested ID.`;

/** The client and the upstream call the model the same. */
export const hasOneName = ({ client_model, upstream_model }: RequestModels): boolean =>
  upstream_model === null || client_model === upstream_model;

/** A sentence for each change that dragoman can make to a request or its response. */
export function describeFixup(name: string, models: RequestModels): string | undefined {
  const [kind, ...rest] = name.split(":");
  const about = rest.join(":").slice(0, 120);
  const beta = betaIn(about);
  if (kind === "refused" && beta)
    return `The beta ${beta} was left out, with its fields, because the upstream rejects it.`;
  if (kind === "refused" && about) return `The field ${about} was removed because the upstream rejects it.`;
  if (kind === "beta" && about) return `The beta ${about} was enabled because the request needs it.`;
  if (kind === "reasoning-lost" && about) return reasoningLost(about);
  if (name === "model-name") return modelName(models);
  return Object.hasOwn(descriptions, name) ? descriptions[name] : undefined;
}

/** @param reason The service's own word, of which OpenAI and Anthropic have several for the same. */
function reasoningLost(reason: string): string {
  const [, why = `for the reason it calls ${reason}`] = lossReasons.find(([words]) => words.test(reason)) ?? [];
  return `The upstream did not show the model the reasoning of earlier turns: ${why}.`;
}

const lossReasons: readonly [RegExp, string][] = [
  [/prefix/, "something before it in the conversation has changed since"],
  [/organi[sz]ation|account/, "another account received it"],
  [/end_user/, "another end user received it"],
  [/model/, "another model made it"],
];

const descriptions: Record<string, string> = {
  // The request
  summary: "A summary that was made here for the client was sent as a message, or as the upstream’s own items.",
  continued: "The client sent only the new items over its WebSocket, so the earlier ones were put before them.",
  "half-characters": "Halves of characters, which no upstream can read, were replaced: a text was cut within an emoji.",
  "max-tokens": "The upstream requires an output limit, so the model’s maximum was set.",
  "max-tokens-name": "The output limit was sent under the parameter name this model supports.",
  "max-tokens-limit": "The output limit was lowered to the model’s maximum.",
  reasoning: "The reasoning settings were converted to the form this model supports.",
  effort: "The reasoning effort was changed to a level the model supports, or removed.",
  sampling: "temperature or top_p was removed because the model accepts only one of them, or neither.",
  "stop-limit": "Only the first four stop sequences were sent, which is the upstream’s maximum.",
  "unsupported-fields": "Fields that the upstream is not known to accept were removed.",
  safeguards: "Claude Code’s safeguards were removed: they name folders of its machine.",
  "beta-fields": "Fields that need a beta that the upstream does not offer were removed.",
  "billing-header":
    "The line with Claude Code’s version was removed from the system prompt: some upstreams reject it, and it keeps the prompt from being cached.",
  "stream-gathered":
    "The model requires streaming for an output this long, so the response was streamed and assembled here.",
  "usage-asked": "Usage was requested at the end of the stream.",
  "empty-tools": "An empty list of tools was removed because the upstream rejects it.",
  "tool-repeated": "A duplicate tool definition was removed.",
  "schema-draft": "A schema in the form of an older draft of JSON Schema was sent in the form of the newest.",
  "schema-boolean": "true and false in place of a schema were sent as an open schema and in words.",
  "schema-pattern": "Patterns that the model’s API cannot read were moved from a schema to its description.",
  "schema-null": "That a value may be null was moved from a tool’s input schema to its description.",
  "schema-types":
    "A list of types in a tool’s input schema was sent as its first type, with the others in the description.",
  "schema-enum": "Values that are no text were moved from a tool’s input schema to its description.",
  "schema-tuple":
    "A list with a schema for each place was sent as a list of any of them, with the order in the description.",
  "schema-items": "A schema of the items was added to a list in a tool’s input schema, as the upstream requires.",
  "schema-item-types": "A type was given to the items of a list in a tool’s input schema, as the upstream requires.",
  "schema-names":
    "Properties of a tool were sent under names that the upstream accepts; calls have the client’s names again.",
  "schema-words":
    "The upstream refused a schema. It was sent in words, in the description of its tool or in the instructions.",
  "schema-union": "The alternatives in a tool’s input schema were merged into one object, as the upstream requires.",
  "schema-type": "The required type was added to a tool’s input schema.",
  "blank-stop": "Stop sequences that contain only whitespace were removed because the upstream rejects them.",
  "system-alone": "The request has instructions but no message, so the instructions were sent as the message.",
  "tool-schema": "An empty parameter schema was added to a tool without one, as the upstream requires.",
  "input-schema": "The type “object” was added to a tool’s input schema, as the upstream requires.",
  "schema-dialect": "$schema was removed from a tool’s input schema.",
  "schema-wrapped":
    "The response schema was sent as the only member of an object, as the model requires, and the response was unwrapped.",
  "output-schema":
    "The response schema was sent in the form that the model’s API takes: objects are closed, and what is not enforced is in descriptions.",
  "structured-output":
    "The model’s API does not support a response schema, or not this one, so it was sent as an instruction to reply in JSON.",
  "developer-role": "Developer messages were sent as system messages.",
  "system-role": "System messages in the middle of the conversation were moved to where the upstream accepts them.",
  "tool-changes":
    "Tools that were announced or withdrawn in the conversation were added to the list of tools, or taken off it.",
  "message-output-config": "The effort that a message asks for was moved to the request.",
  "cleared-reminders": "Reminders that the client meant for an earlier turn only were left out.",
  compaction: "A summary of the conversation's beginning was sent as text.",
  "tool-results":
    "Each tool result was put after its call. A call without a result got one that says so; a result without a call was sent as text.",
  "call-pairs":
    "A tool call without a result got one that says so; a result without a call was sent as text, and one of another kind than its call became one of its kind.",
  "call-namespace": "The namespace was added to a tool call without one, as the upstream requires.",
  "namespace-description":
    "A namespace of tools without a description was described by its name, as the upstream requires.",
  "call-input": "The input of a tool call that was no JSON object was sent as one, as the upstream requires.",
  "call-ids": "IDs of tool calls that are longer than the upstream takes were shortened.",
  "failed-result": "A tool result that failed and says nothing got a sentence, as the upstream requires.",
  "repeated-call-ids": "Tool calls with the same ID were given IDs of their own, as the upstream requires.",
  "repeated-item-ids": "Items that the client repeated, or their IDs, were removed because the upstream rejects them.",
  "tool-result-order": "Tool results were moved to the start of their message.",
  "missing-tool-result": "A placeholder result was added for a tool call without a result.",
  "orphan-tool-result": "A tool result without a matching call was sent as text.",
  "image-type": "An image got the type that it is of; in place of one that the model does not take went a note.",
  "tool-images": "Images in a tool result were moved to a user message.",
  "tool-ids": "Tool call IDs were rewritten with characters the upstream accepts.",
  "tool-fields": "Tool fields that require tool search were removed.",
  "tool-reference": "References to tools that are not in the request were removed.",
  "defer-loading": "Cache breakpoints were removed from tools with deferred loading.",
  "eager-input-streaming": "eager_input_streaming was removed from tools because the upstream rejects it.",
  "server-tools": "Tools that the upstream would have to run itself were removed.",
  "server-calls": "Calls of tools that another provider ran were removed with their results.",
  "server-tools-here":
    "The model was given a function in place of a tool of another provider. dragoman runs it while the model answers.",
  "tools-deferred":
    "Tools that the client marked as deferred were left out until the model searches for them, as the client’s own provider does.",
  "tools-over-limit":
    "The request has more tools than the model accepts, so the last ones were left out, and the model was given a search for them.",
  "tool-choice-without-tools": "The tool choice was removed because the request has no tools.",
  "tool-choice-with-thinking":
    "Tool use cannot be forced while thinking is on, so the tool choice was set to automatic.",
  "cache-key":
    "A key for the prompt cache was added, made of the client’s session, so that later turns find the prompt.",
  "cache-marks": "The client’s cache breakpoints were converted to the form that GitHub Copilot accepts.",
  "cache-marks-added":
    "Cache breakpoints were added because the client sent none, so that later turns read the prompt from the cache.",
  "cache-top-level": "The cache breakpoint of the whole request was moved to its last block.",
  "cache-scope": "The scope of a cache breakpoint was removed.",
  "cache-ttl": "The lifetime of a cache breakpoint was removed.",
  "cache-limit": "Only the last four cache breakpoints were kept.",
  "cache-on-thinking": "A cache breakpoint on a thinking block was removed.",
  "cache-in-tool-result": "A cache breakpoint inside a tool result was moved to the result itself.",
  "copilot-fields": "Copilot-specific fields were removed because strict clients do not expect them.",
  "empty-text": "Empty text was removed or filled because the upstream rejects it.",
  "no-prefill": "The model does not support prefilled responses, so it was asked to continue the text instead.",
  "file-name": "A name was added to a file without one, because OpenAI’s models require it.",
  "own-searches": "A search that ran here was sent as a function call with its result.",
  "lost-citations":
    "Citations of what a search found or a provider’s tool read were removed, because the upstream does not have what they refer to.",
  "foreign-thinking": "Thinking from another model was removed, because only that model’s vendor can read it.",
  "foreign-items":
    "Thinking that belongs to another account, or to another beginning of the conversation, was removed: the upstream rejects it.",
  "thinking-adaptive": "Thinking was requested in the form this model supports.",
  "thinking-display":
    "Thinking was requested as a summary, because the upstream does not offer the client’s way to show it.",
  "always-thinks": "The model always thinks, so it was asked to, with the least effort if thinking was turned off.",
  "forced-choice": "The model cannot be forced to call a tool, so words at the end of the request ask for the call.",
  "thinking-shown":
    "The client did not say how thinking is to be shown, so a summary was requested: without one, newer models stay silent while they think.",
  "thinking-type": "The upstream does not know the kind of thinking that the client asked for, so the model decides.",
  "thinking-in-tool-loop": "Thinking was turned off in the middle of a turn that began without it.",
  "thinking-budget": "The thinking budget was adjusted to the model’s limits.",
  "context-editing":
    "The instruction to clear old parts of the conversation was removed: GitHub’s model list says that the model does not support it.",
  "clear-thinking": "The instruction to clear thinking was removed because the request has none.",
  "output-format": "The output format was moved to the parameter the upstream supports.",
  store: "store was set to false, because nothing is stored upstream.",
  background: "background was removed: a response ends with its request.",
  "service-tier": "service_tier was removed because the upstream does not support it.",
  "include-reasoning": "Encrypted reasoning was requested, so that the next turn can continue from it.",
  "image-generation": "The image generation tool was removed because the upstream does not support it.",
  "web-search": "The web search tool was removed, as set in the config.",
  "strict-default": "Tools were marked as not strict, which is the client’s default.",
  "item-reference": "References to stored items were removed, because nothing is stored.",
  "unsigned-reasoning": "Reasoning without encrypted content was removed.",
  "message-metadata": "Client-specific metadata was removed from messages.",
  // The response
  "object-field": "The missing object field was added.",
  "created-field": "The missing created field was added.",
  "split-choices": "Text and tool calls sent as separate choices were merged into one.",
  role: "The missing role was set to assistant.",
  annotations:
    "What GitHub Copilot’s filters found in code was removed from a field in which strict clients expect citations.",
  "choice-index": "The missing index was added to a choice.",
  "choices-field": "An empty list of choices was added to a chunk without one.",
  "finish-reason": "The missing finish reason was added, or one that is empty became null.",
  padding: "Padding was removed.",
  "content-key": "content was set to null in a message without it.",
  "tool-id": "A tool call without an ID, or with the one of another call, was given an ID of its own.",
  "done-event": "The missing last event of the stream was added.",
  "tool-index": "The missing index was added to a tool call in the stream.",
  "empty-data": "An empty event was removed because some clients fail on it.",
  "usage-chunk": "The usage chunk was removed because the client did not request it.",
  "reply-unfollowed":
    "The reply has something that could not be followed. It was passed on as it came; what it says is left out of this row, but for usage and end.",
  "prompt-uncounted":
    "The prompt is long, and it was not counted in time: it was sent without being compared with the limit.",
  "usage-unbelievable":
    "The upstream reported a number of tokens or a charge that cannot be, so it is recorded as unknown.",
  "bill-chunk": "The upstream’s cost report was removed.",
  "data-field": "An error was sent in the format of the stream.",
  "block-start": "The missing start of a text block was added to the stream.",
  "event-name": "Names of events were added or corrected: some clients go by them.",
  "foreign-event": "An event that clients do not know was removed.",
  "error-event": "An error in the stream was converted to the client’s format.",
  "usage-field": "Missing usage fields were added, which strict clients require.",
  "item-ids": "Changing item IDs were made consistent, or removed where the upstream cannot know them.",
  "sequence-number": "Sequence numbers were added to events.",
  "response-id": "The response ID was kept the same in all events.",
  "empty-output": "The streamed output was added to the last event.",
};
