/**
 * Pairs: no value that one API alone has is passed on to another one. The lists of values are the compiler's: an official package with
 * another value does not compile here.
 */
import { expect, test } from "bun:test";
import type {
  Base64ImageSource,
  Message,
  MessageCreateParams,
  OutputConfig,
} from "@anthropic-ai/sdk/resources/messages";
import { FunctionCallingConfigMode, MediaResolution, ThinkingLevel } from "@google/genai";
import type {
  ChatCompletion,
  ChatCompletionContentPartImage,
  ChatCompletionCreateParams,
} from "openai/resources/chat/completions";
import type * as Api from "openai/resources/responses/responses";
import type { Reasoning, ReasoningEffort } from "openai/resources/shared";
import { codecs } from "../../src/dialects/codecs";
import { type ClientDialect, type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { isObject } from "../../src/lib/json";
import { adapt } from "../support/adapt";
import { ableModel } from "../support/facts";

/** The words of a type, without null. */
type Words<T> = Record<Extract<T, string>, true>;

const efforts = {
  ...{ none: true, minimal: true, low: true, medium: true, high: true, xhigh: true, max: true },
} satisfies Words<ReasoningEffort>;
const levels = { low: true, medium: true, high: true } satisfies Record<string, true>;
const details = { auto: true, low: true, high: true, original: true } satisfies Words<Api.ImageDetail>;
const chatTiers = {
  ...{ auto: true, default: true, flex: true, scale: true, priority: true, fast: true },
} satisfies Words<ChatCompletionCreateParams["service_tier"]>;
const retentions = { in_memory: true, "24h": true } satisfies Words<
  ChatCompletionCreateParams["prompt_cache_retention"]
>;

/** Types of images in data URLs; those that Anthropic takes are in its package. */
const anthropicImages = {
  ...{ "image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true },
} satisfies Words<Base64ImageSource["media_type"]>;
const images = {
  ...{ ...anthropicImages, "image/jpg": true, "image/bmp": true, "image/tiff": true, "image/heic": true },
  ...{ "image/avif": true, "image/svg+xml": true },
} satisfies Record<string, true>;

interface Said {
  values: Record<string, true>;
  body(value: string): JsonObject;
}

interface Row {
  /** What the value is called in the requests that go up, wherever it stands. */
  key: string;
  clients: Partial<Record<ClientDialect, Said>>;
  /** What an upstream takes under that name; missing if it does not have it. */
  takes: Partial<Record<Dialect, Record<string, true>>>;
}

const user = (...content: JsonObject[]) => [{ role: "user", content }];
const chatImage = (url: string, more: JsonObject = {}) => user({ type: "image_url", image_url: { url, ...more } });
const inputImage = (image_url: string, more: JsonObject = {}) => user({ type: "input_image", image_url, ...more });
const data = (type: string) => `data:${type};base64,AAAA`;
const png = data("image/png");
const tool = { name: "look", parameters: { type: "object" } };
const weather = { type: "function", ...tool };
/** Of a field of the request itself. */
const field = (name: string, values: Record<string, true>): Said => ({ values, body: (value) => ({ [name]: value }) });
const inner = (outer: string, name: string, values: Record<string, true>): Said => ({
  values,
  body: (value) => ({ [outer]: { [name]: value } }),
});
const toOpenAi = (row: { chat: Record<string, true>; responses: Record<string, true> }, name: string) => ({
  chat: field(name, row.chat),
  responses: field(name, row.responses),
});

const rows: Record<string, Row> = {
  "how closely an image is looked at": {
    key: "detail",
    clients: {
      chat: {
        values: details satisfies Words<ChatCompletionContentPartImage.ImageURL["detail"]>,
        body: (detail) => ({ messages: chatImage(png, { detail }) }),
      },
      responses: { values: details, body: (detail) => ({ input: inputImage(png, { detail }) }) },
    },
    // Gateways of chat completions know three, whatever OpenAI's own takes (farion1231/cc-switch#7555).
    takes: { chat: { auto: true, low: true, high: true }, responses: details },
  },
  "how closely an image of a tool's result is looked at": {
    key: "detail",
    clients: {
      responses: {
        values: details,
        body: (detail) => ({
          input: [
            { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
            { type: "function_call_output", call_id: "c1", output: [{ type: "input_image", image_url: png, detail }] },
          ],
        }),
      },
    },
    takes: { chat: { auto: true, low: true, high: true }, responses: details },
  },
  "how closely a file is read": {
    key: "detail",
    clients: {
      responses: {
        values: { auto: true, low: true, high: true } satisfies Words<Api.ResponseInputFile["detail"]>,
        body: (detail) => ({
          input: user({ type: "input_file", filename: "a.pdf", file_data: data("application/pdf"), detail }),
        }),
      },
    },
    takes: {},
  },
  "types of images": {
    key: "media_type",
    clients: {
      chat: { values: images, body: (type) => ({ messages: chatImage(data(type)) }) },
      responses: { values: images, body: (type) => ({ input: inputImage(data(type)) }) },
      gemini: {
        values: images,
        body: (mimeType) => ({ contents: [{ role: "user", parts: [{ inlineData: { mimeType, data: "AAAA" } }] }] }),
      },
    },
    takes: { messages: anthropicImages },
  },
  "effort, in chat": {
    key: "reasoning_effort",
    clients: {
      responses: inner("reasoning", "effort", efforts),
      messages: inner("output_config", "effort", {
        ...{ low: true, medium: true, high: true, xhigh: true, max: true },
      } satisfies Words<OutputConfig["effort"]>),
      gemini: {
        values: wordsOf(ThinkingLevel),
        body: (thinkingLevel) => ({ generationConfig: { thinkingConfig: { thinkingLevel } } }),
      },
    },
    takes: { chat: levels },
  },
  "effort elsewhere": {
    key: "effort",
    clients: { chat: field("reasoning_effort", efforts), responses: inner("reasoning", "effort", efforts) },
    takes: { responses: levels, messages: levels },
  },
  "how thinking is shown": {
    key: "summary",
    clients: {
      responses: inner("reasoning", "summary", {
        ...{ auto: true, concise: true, detailed: true },
      } satisfies Words<Reasoning["summary"]>),
    },
    takes: {},
  },
  verbosity: {
    key: "verbosity",
    clients: {
      chat: field("verbosity", levels satisfies Words<ChatCompletionCreateParams["verbosity"]>),
      responses: inner("text", "verbosity", levels satisfies Words<Api.ResponseTextConfig["verbosity"]>),
    },
    takes: { chat: levels, responses: levels },
  },
  "tier of service": {
    key: "service_tier",
    clients: {
      ...toOpenAi(
        { chat: chatTiers, responses: { ...chatTiers, ultrafast: true } satisfies Words<Api.ServiceTier> },
        "service_tier",
      ),
      messages: field("service_tier", {
        ...{ auto: true, standard_only: true },
      } satisfies Words<MessageCreateParams["service_tier"]>),
    },
    takes: { chat: chatTiers, responses: { ...chatTiers, ultrafast: true } },
  },
  speed: {
    key: "speed",
    clients: { messages: field("speed", { standard: true, fast: true } satisfies Words<MessageCreateParams["speed"]>) },
    takes: {},
  },
  "how long the cache keeps a prompt": {
    key: "prompt_cache_retention",
    clients: toOpenAi({ chat: retentions, responses: retentions }, "prompt_cache_retention"),
    takes: { chat: retentions, responses: retentions },
  },
  truncation: {
    key: "truncation",
    clients: {
      responses: field("truncation", {
        ...{ auto: true, disabled: true },
      } satisfies Words<Api.ResponseCreateParams["truncation"]>),
    },
    takes: {},
  },
  "what a message is for": {
    key: "phase",
    clients: {
      responses: {
        values: { commentary: true, final_answer: true } satisfies Words<Api.ResponseOutputMessage["phase"]>,
        body: (phase) => ({
          input: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }], phase }],
        }),
      },
    },
    takes: {},
  },
  roles: {
    key: "role",
    clients: {
      chat: {
        values: { developer: true, system: true, user: true, assistant: true },
        body: (role) => ({ messages: [{ role, content: "Hi" }, ...user({ type: "text", text: "Hi" })] }),
      },
      responses: {
        values: { user: true, assistant: true, system: true, developer: true } satisfies Words<
          Api.EasyInputMessage["role"]
        >,
        body: (role) => ({ input: [{ role, content: "Hi" }, ...user({ type: "input_text", text: "Hi" })] }),
      },
      gemini: {
        values: { user: true, model: true },
        body: (role) => ({
          contents: [
            { role, parts: [{ text: "Hi" }] },
            { role: "user", parts: [{ text: "Hi" }] },
          ],
        }),
      },
    },
    takes: {
      chat: { developer: true, system: true, user: true, assistant: true },
      responses: { developer: true, system: true, user: true, assistant: true },
      messages: { user: true, assistant: true },
    },
  },
  "choice of tools": {
    key: "tool_choice",
    clients: {
      chat: {
        values: { none: true, auto: true, required: true },
        body: (tool_choice) => ({ tools: [{ type: "function", function: tool }], tool_choice }),
      },
      responses: {
        values: { none: true, auto: true, required: true } satisfies Words<Api.ToolChoiceOptions>,
        body: (tool_choice) => ({ tools: [weather], tool_choice }),
      },
      messages: {
        values: { none: true, auto: true, any: true },
        body: (type) => ({ tools: [{ name: "look", input_schema: { type: "object" } }], tool_choice: { type } }),
      },
      gemini: {
        values: wordsOf(FunctionCallingConfigMode),
        body: (mode) => ({
          tools: [{ functionDeclarations: [tool] }],
          toolConfig: { functionCallingConfig: { mode } },
        }),
      },
    },
    takes: {
      chat: { none: true, auto: true, required: true },
      responses: { none: true, auto: true, required: true },
      messages: { none: true, auto: true, any: true },
    },
  },
  "resolution of media": {
    key: "mediaResolution",
    clients: { gemini: inner("generationConfig", "mediaResolution", wordsOf(MediaResolution)) },
    takes: {},
  },
};

function wordsOf(words: Record<string, string>): Record<string, true> {
  return Object.fromEntries(Object.values(words).map((word) => [word, true]));
}

const plain: Record<ClientDialect, JsonObject> = {
  chat: { model: "m", messages: user({ type: "text", text: "Hi" }) },
  responses: { model: "m", input: "Hi" },
  messages: { model: "m", max_tokens: 4000, messages: user({ type: "text", text: "Hi" }) },
  gemini: { model: "m", contents: [{ role: "user", parts: [{ text: "Hi" }] }] },
};

const copilot: Record<Dialect, ModelFacts> = {
  chat: ableModel("gpt-4.1", "OpenAI"),
  responses: ableModel("gpt-5.3-codex", "OpenAI"),
  messages: ableModel("claude-sonnet-4.6", "Anthropic"),
};
/** A provider gets what Copilot's rules would take away. */
const provided = (dialect: Dialect): ModelFacts => ({
  ...copilot[dialect],
  supports: { ...copilot[dialect].supports, efforts: Object.keys(levels) },
  provider: { assumed: [] },
});

/** All words that stand under a key, or under `type` of what stands there. */
function wordsAt(value: unknown, key: string): unknown[] {
  if (Array.isArray(value)) return value.flatMap((member) => wordsAt(member, key));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    if (name !== key) return wordsAt(member, key);
    return isObject(member) ? [member.type, ...wordsAt(member, key)] : [member];
  });
}

const cases = Object.entries(rows).flatMap(([name, row]) =>
  (Object.keys(row.clients) as ClientDialect[]).flatMap((client) =>
    dialects.filter((upstream) => upstream !== client).map((upstream) => ({ name, client, upstream, row })),
  ),
);

test.each(cases)("each value that a package declares: $name: $client → $upstream", ({ client, upstream, row }) => {
  const { values, body } = row.clients[client]!;
  const taken = Object.keys(row.takes[upstream] ?? {});
  for (const model of [copilot[upstream], provided(upstream)])
    for (const value of Object.keys(values)) {
      const conversation = codecs[client].decodeRequest({ ...plain[client], ...body(value) });
      const sent = codecs[upstream].encodeRequest(adapt(conversation, upstream).conversation, model);
      expect({ value, refused: wordsAt(sent, row.key).filter((word) => !taken.includes(String(word))) }).toEqual({
        value,
        refused: [],
      });
    }
});

/** Why a reply ended, as each package declares it, and how a reply of each API says it. */
const reasons = {
  chat: {
    ...{ stop: true, length: true, tool_calls: true, content_filter: true, function_call: true },
  } satisfies Words<ChatCompletion.Choice["finish_reason"]>,
  responses: {
    ...{ max_output_tokens: true, max_messages: true, content_filter: true, steered: true },
  } satisfies Words<Api.Response.IncompleteDetails["reason"]>,
  messages: {
    ...{ end_turn: true, max_tokens: true, stop_sequence: true, tool_use: true, pause_turn: true, refusal: true },
    model_context_window_exceeded: true,
  } satisfies Words<Message["stop_reason"]>,
};
const ended: Record<Dialect, { key: string; reply(reason: string): JsonObject }> = {
  chat: {
    key: "finish_reason",
    reply: (finish_reason) => ({ choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason }] }),
  },
  responses: {
    key: "reason",
    reply: (reason) => ({
      status: "incomplete",
      incomplete_details: { reason },
      output: [{ type: "message", content: [{ type: "output_text", text: "Hi" }] }],
    }),
  },
  messages: {
    key: "stop_reason",
    reply: (stop_reason) => ({ content: [{ type: "text", text: "Hi" }], stop_reason }),
  },
};

test.each(
  dialects.flatMap((client) => dialects.filter((each) => each !== client).map((each) => [client, each] as const)),
)("a client of %s is told why a reply of %s ended in a word that it knows", (client, upstream) => {
  for (const reason of Object.keys(reasons[upstream])) {
    const events = codecs[upstream].decodeReply({ id: "r1", model: "m", usage: {}, ...ended[upstream].reply(reason) });
    const reply = codecs[client].encodeReply(events, codecs[client].decodeRequest(plain[client]));
    for (const word of wordsAt(reply, ended[client].key)) expect(Object.keys(reasons[client])).toContain(String(word));
  }
});
