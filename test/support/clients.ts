/**
 * The official packages as clients, asked one neutral question and giving one neutral answer. Requests are spelt here by
 * hand, without our codecs, so that a mistake of theirs cannot hide.
 */
import Anthropic from "@anthropic-ai/sdk";
import {
  type Content,
  FunctionCallingConfigMode,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from "@google/genai";
import OpenAI from "openai";
import type { ClientDialect } from "../../src/dialects/hub/conversation";
import { readSse, type SseFrame } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";

/** What a person wants to know, in nobody's dialect. */
export interface Question {
  system?: string;
  turns: Turn[];
  tools?: ToolSpec[];
  /** A budget, an effort: whatever the dialect has to say that the model shall think. */
  think?: boolean;
  /** That it shall not think, in the dialect's words for it. */
  mayNotThink?: boolean;
  /** A tool that has to be called, or any of them. */
  mustCall?: { tool: string } | "any";
  maxTokens?: number;
  stop?: string[];
  schema?: Record<string, unknown>;
}

export type Turn =
  | { user: string; image?: string }
  | { assistant: string; calls?: Call[] }
  /** An earlier answer, as the package gave it. */
  | { said: Answer }
  | { results: { id: string; text: string; image?: string; failed?: true }[] };

export interface ToolSpec {
  name: string;
  description?: string;
  schema: Record<string, unknown>;
}

interface Call {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export interface Answer {
  text: string;
  refusal: string;
  thinking: string;
  calls: Call[];
  /** The dialect's own word for why it ended. */
  stop: string;
  /** In the dialect's own words and by its own definition. */
  usage: object;
  model: string;
  /** The messages, items or content a client adds to its history. */
  history: unknown[];
}

export interface Client {
  dialect: ClientDialect;
  full(question: Question, model: string): Promise<Answer>;
  stream(question: Question, model: string): Promise<Answer>;
  /** The frames of the last stream as they came over the wire. */
  frames(): SseFrame[];
  /** The last request's body. */
  sent(): Record<string, unknown>;
}

/** Every package for itself, never trying twice: what comes is what is shown. */
export const clients = {
  chat: chatClient,
  responses: responsesClient,
  messages: messagesClient,
  gemini: geminiClient,
} satisfies Record<ClientDialect, (url: string, key?: string) => Client>;

/** How a question is refused. @throws if it is answered. */
export async function refusalOf(answer: Promise<Answer>): Promise<{ status: number; message: string }> {
  const thrown = await answer.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(thrown instanceof Error) || !("status" in thrown)) throw new Error(`This was not refused: ${thrown}`);
  return { status: Number(thrown.status), message: thrown.message };
}

/** A fetch that keeps what went through it. */
function recorder() {
  let body: Promise<Uint8Array> = Promise.resolve(new Uint8Array());
  let bytes = new Uint8Array();
  let sent: Record<string, unknown> = {};
  return {
    async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
      sent = JSON.parse(String(init?.body ?? "{}"));
      const response = await fetch(input, init);
      if (!response.body) return response;
      const [theirs, ours] = response.body.tee();
      body = new Response(ours).bytes();
      return new Response(theirs, response);
    },
    async settle() {
      bytes = new Uint8Array(await body);
    },
    frames: () => run(readSse, [bytes]),
    sent: () => sent,
  };
}

// ── Chat ──

interface Thoughtful {
  reasoning_text?: string | null;
  reasoning_opaque?: string | null;
}

function chatClient(url: string, apiKey = "unused"): Client {
  const kept = recorder();
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, fetch: kept.fetch });

  const params = (
    { system, turns, tools, mustCall, think, mayNotThink, maxTokens, stop, schema: form }: Question,
    model: string,
  ) => ({
    model,
    messages: [
      ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
      ...turns.flatMap(chatMessages),
    ] as OpenAI.ChatCompletionMessageParam[],
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({
        type: "function" as const,
        function: { name, ...(description && { description }), parameters: schema },
      })),
    }),
    ...(mustCall && {
      tool_choice:
        mustCall === "any" ? ("required" as const) : { type: "function" as const, function: { name: mustCall.tool } },
    }),
    ...(think && { reasoning_effort: "medium" as const }),
    ...(mayNotThink && { reasoning_effort: "none" as const }),
    ...(maxTokens && { max_completion_tokens: maxTokens }),
    ...(stop && { stop }),
    ...(form && {
      response_format: {
        type: "json_schema" as const,
        json_schema: { name: "answer", schema: form, strict: true },
      },
    }),
  });

  const read = (completion: OpenAI.ChatCompletion, thought: Thoughtful): Answer => {
    const { message, finish_reason } = completion.choices[0]!;
    const calls = message.tool_calls ?? [];
    return {
      text: message.content ?? "",
      refusal: message.refusal ?? "",
      thinking: thought.reasoning_text ?? "",
      calls: calls.flatMap((call) =>
        call.type === "function" ? [readCall(call.id, call.function.name, call.function.arguments)] : [],
      ),
      stop: finish_reason,
      usage: completion.usage ?? {},
      model: completion.model,
      history: [
        {
          role: "assistant",
          content: message.content,
          ...(calls.length > 0 && { tool_calls: calls }),
          ...(thought.reasoning_text && { reasoning_text: thought.reasoning_text }),
          ...(thought.reasoning_opaque && { reasoning_opaque: thought.reasoning_opaque }),
        },
      ],
    };
  };

  return {
    dialect: "chat",
    async full(question, model) {
      const completion = await openai.chat.completions.create({ ...params(question, model), stream: false });
      if (completion.choices.length !== 1) throw new Error(`${completion.choices.length} choices`);
      return read(completion, completion.choices[0]!.message as Thoughtful);
    },
    async stream(question, model) {
      const stream = openai.chat.completions.stream({
        ...params(question, model),
        stream: true,
        stream_options: { include_usage: true },
      });
      const thought = { reasoning_text: "", reasoning_opaque: "" };
      stream.on("chunk", ({ choices }) => {
        const delta = (choices[0]?.delta ?? {}) as Thoughtful;
        thought.reasoning_text += delta.reasoning_text ?? "";
        thought.reasoning_opaque += delta.reasoning_opaque ?? "";
      });
      const completion = await stream.finalChatCompletion();
      await kept.settle();
      return read(completion, thought);
    },
    ...kept,
  };
}

function chatMessages(turn: Turn): unknown[] {
  const image = (data: string) => ({ type: "image_url", image_url: { url: dataUrl(data) } });
  if ("said" in turn) return turn.said.history;
  if ("user" in turn)
    return [{ role: "user", content: turn.image ? [{ type: "text", text: turn.user }, image(turn.image)] : turn.user }];
  if ("assistant" in turn)
    return [
      {
        role: "assistant",
        content: turn.assistant,
        ...(turn.calls && {
          tool_calls: turn.calls.map(({ id, name, input }) => ({
            id,
            type: "function",
            function: { name, arguments: JSON.stringify(input) },
          })),
        }),
      },
    ];
  return turn.results.map((result) => ({
    role: "tool",
    tool_call_id: result.id,
    content: result.image ? [{ type: "text", text: result.text }, image(result.image)] : result.text,
  }));
}

// ── Responses ──

function responsesClient(url: string, apiKey = "unused"): Client {
  const kept = recorder();
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0, fetch: kept.fetch });

  const params = (
    { system, turns, tools, mustCall, think, mayNotThink, maxTokens, schema: form }: Question,
    model: string,
  ) => ({
    model,
    store: false,
    input: turns.flatMap(responsesItems) as OpenAI.Responses.ResponseInput,
    ...(system !== undefined && { instructions: system }),
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({
        type: "function" as const,
        name,
        description: description ?? null,
        parameters: schema,
        strict: false,
      })),
    }),
    ...(mustCall && {
      tool_choice: mustCall === "any" ? ("required" as const) : { type: "function" as const, name: mustCall.tool },
    }),
    ...(think && {
      reasoning: { effort: "medium" as const, summary: "auto" as const },
      include: ["reasoning.encrypted_content" as const],
    }),
    ...(mayNotThink && { reasoning: { effort: "none" as const } }),
    ...(maxTokens && { max_output_tokens: maxTokens }),
    // The dialect has no stop sequences.
    ...(form && {
      text: { format: { type: "json_schema" as const, name: "answer", schema: form, strict: true } },
    }),
  });

  const read = (response: OpenAI.Responses.Response): Answer => {
    const parts = response.output.flatMap((item) => (item.type === "message" ? item.content : []));
    return {
      text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
      refusal: parts.map((part) => (part.type === "refusal" ? part.refusal : "")).join(""),
      thinking: response.output
        .flatMap((item) => (item.type === "reasoning" ? item.summary.map(({ text }) => text) : []))
        .join(""),
      calls: response.output.flatMap((item) =>
        item.type === "function_call" ? [readCall(item.call_id, item.name, item.arguments)] : [],
      ),
      stop: response.incomplete_details?.reason ?? response.status ?? "",
      usage: response.usage ?? {},
      model: response.model,
      history: response.output.map(withoutParsed),
    };
  };

  return {
    dialect: "responses",
    full: async (question, model) => read(await openai.responses.create({ ...params(question, model), stream: false })),
    async stream(question, model) {
      const response = await openai.responses.stream({ ...params(question, model), stream: true }).finalResponse();
      await kept.settle();
      return read(response);
    },
    ...kept,
  };
}

/** The package adds what it parsed; no client sends that back. */
function withoutParsed(item: OpenAI.Responses.ResponseOutputItem): unknown {
  return JSON.parse(JSON.stringify(item), (key: string, value: unknown) =>
    key === "parsed" || key === "parsed_arguments" ? undefined : value,
  );
}

function responsesItems(turn: Turn): unknown[] {
  const image = (data: string) => ({ type: "input_image", image_url: dataUrl(data), detail: "auto" });
  if ("said" in turn) return turn.said.history;
  if ("user" in turn)
    return [
      { role: "user", content: turn.image ? [{ type: "input_text", text: turn.user }, image(turn.image)] : turn.user },
    ];
  if ("assistant" in turn)
    return [
      { role: "assistant", content: turn.assistant },
      ...(turn.calls ?? []).map(({ id, name, input }) => ({
        type: "function_call",
        call_id: id,
        name,
        arguments: JSON.stringify(input),
      })),
    ];
  return turn.results.map((result) => ({
    type: "function_call_output",
    call_id: result.id,
    output: result.image ? [{ type: "input_text", text: result.text }, image(result.image)] : result.text,
  }));
}

// ── Messages ──

function messagesClient(url: string, apiKey = "unused"): Client {
  const kept = recorder();
  const anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0, fetch: kept.fetch });

  const params = (
    { system, turns, tools, mustCall, think, mayNotThink, maxTokens, stop, schema: form }: Question,
    model: string,
  ) => ({
    model,
    max_tokens: maxTokens ?? 4000,
    messages: turns.map(messagesTurn) as Anthropic.MessageParam[],
    ...(system !== undefined && { system: system }),
    ...(tools && {
      tools: tools.map(({ name, description, schema }) => ({
        name,
        ...(description && { description }),
        input_schema: { type: "object" as const, ...schema },
      })),
    }),
    ...(mustCall && {
      tool_choice: mustCall === "any" ? { type: "any" as const } : { type: "tool" as const, name: mustCall.tool },
    }),
    ...(think && { thinking: { type: "enabled" as const, budget_tokens: 2000 } }),
    ...(mayNotThink && { thinking: { type: "disabled" as const } }),
    ...(stop && { stop_sequences: stop }),
    ...(form && {
      output_config: { format: { type: "json_schema" as const, schema: form } },
    }),
  });

  const read = (message: Anthropic.Message): Answer => {
    const texts = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const refused = message.stop_reason === "refusal";
    return {
      text: refused ? "" : texts,
      refusal: refused ? texts : "",
      thinking: message.content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
      calls: message.content.flatMap((block) =>
        block.type === "tool_use"
          ? [{ id: block.id, name: block.name, input: block.input as Record<string, unknown> }]
          : [],
      ),
      stop: message.stop_reason ?? "",
      usage: message.usage,
      model: message.model,
      history: message.content,
    };
  };

  return {
    dialect: "messages",
    full: async (question, model) => read(await anthropic.messages.create(params(question, model))),
    async stream(question, model) {
      const message = await anthropic.messages.stream(params(question, model)).finalMessage();
      await kept.settle();
      return read(message);
    },
    ...kept,
  };
}

function messagesTurn(turn: Turn): unknown {
  const image = (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } });
  if ("said" in turn) return { role: "assistant", content: turn.said.history };
  if ("user" in turn)
    return { role: "user", content: turn.image ? [{ type: "text", text: turn.user }, image(turn.image)] : turn.user };
  if ("assistant" in turn)
    return {
      role: "assistant",
      content: [
        { type: "text", text: turn.assistant },
        ...(turn.calls ?? []).map((call) => ({ type: "tool_use", ...call })),
      ],
    };
  return {
    role: "user",
    content: turn.results.map((result) => ({
      type: "tool_result",
      tool_use_id: result.id,
      content: result.image ? [{ type: "text", text: result.text }, image(result.image)] : result.text,
      ...(result.failed && { is_error: true }),
    })),
  };
}

// ── Gemini ──

function geminiClient(url: string): Client {
  const kept = recorder();
  const google = new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: url, fetch: kept.fetch } });
  let members = {};

  const params = (
    { system, turns, tools, mustCall, think, mayNotThink, maxTokens, stop, schema: form }: Question,
    model: string,
  ) => ({
    model,
    contents: turns.flatMap(geminiContents),
    config: {
      ...(system !== undefined && { systemInstruction: system }),
      ...(tools && {
        tools: [
          {
            functionDeclarations: tools.map(({ name, description, schema }) => ({
              name,
              ...(description && { description }),
              parametersJsonSchema: schema,
            })),
          },
        ],
      }),
      ...(mustCall && {
        toolConfig: {
          functionCallingConfig: {
            mode: FunctionCallingConfigMode.ANY,
            ...(mustCall !== "any" && { allowedFunctionNames: [mustCall.tool] }),
          },
        },
      }),
      ...(think && { thinkingConfig: { thinkingBudget: 2000, includeThoughts: true } }),
      ...(mayNotThink && { thinkingConfig: { thinkingBudget: 0 } }),
      ...(maxTokens && { maxOutputTokens: maxTokens }),
      ...(stop && { stopSequences: stop }),
      ...(form && { responseMimeType: "application/json", responseJsonSchema: form }),
    },
  });

  const read = (pieces: GenerateContentResponse[]): Answer => {
    const last = pieces.at(-1)!;
    const contents = pieces.flatMap(({ candidates }) => candidates?.[0]?.content ?? []);
    const parts = contents.flatMap(({ parts }) => parts ?? []);
    const words = (wanted: (part: Part) => boolean) =>
      parts
        .filter(wanted)
        .map(({ text }) => text ?? "")
        .join("");
    const stop = last.candidates?.[0]?.finishReason ?? "";
    const text = words(({ thought }) => !thought);
    return {
      text: stop === "SAFETY" ? "" : text,
      refusal: stop === "SAFETY" ? text : "",
      thinking: words(({ thought }) => thought === true),
      calls: parts.flatMap(({ functionCall: call }) =>
        call ? [{ id: call.id ?? "", name: call.name ?? "", input: call.args ?? {} }] : [],
      ),
      stop,
      usage: last.usageMetadata ?? {},
      model: last.modelVersion ?? "",
      // As the package's own chat sessions keep it: each piece is a content.
      history: contents,
    };
  };

  return {
    dialect: "gemini",
    async full(question, model) {
      const response = await google.models.generateContent(params(question, model));
      if (response.candidates?.length !== 1) throw new Error(`${response.candidates?.length} candidates`);
      return read([response]);
    },
    async stream(question, model) {
      members = { model, stream: true, alt: "sse" };
      const pieces = await Array.fromAsync(await google.models.generateContentStream(params(question, model)));
      await kept.settle();
      return read(pieces);
    },
    ...kept,
    // What the address says.
    sent: () => ({ ...kept.sent(), ...members }),
  };
}

function geminiContents(turn: Turn): Content[] {
  const image = (data: string) => ({ inlineData: { mimeType: "image/png", data } });
  if ("said" in turn) return turn.said.history as Content[];
  if ("user" in turn)
    return [{ role: "user", parts: [{ text: turn.user }, ...(turn.image ? [image(turn.image)] : [])] }];
  if ("assistant" in turn)
    return [
      {
        role: "model",
        parts: [
          { text: turn.assistant },
          ...(turn.calls ?? []).map(({ id, name, input }) => ({ functionCall: { id, name, args: input } })),
        ],
      },
    ];
  const parts = turn.results.map((result) => ({
    functionResponse: {
      id: result.id,
      name: "",
      response: result.failed ? { error: result.text } : { output: result.text },
      ...(result.image && { parts: [image(result.image)] }),
    },
  }));
  return [{ role: "user", parts }];
}

const dataUrl = (data: string) => `data:image/png;base64,${data}`;

const readCall = (id: string, name: string, input: string): Call => ({ id, name, input: JSON.parse(input) });
