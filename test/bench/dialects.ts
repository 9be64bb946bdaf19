/** What the bench says in each dialect: requests, and the frames of a stream. */
export const dialects = ["chat", "responses", "messages"] as const;
export type Dialect = (typeof dialects)[number];

export const clientPath: Record<Dialect, string> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};
export const upstreamPath: Record<Dialect, string> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/v1/messages",
};
/** The model that the upstream serves in this dialect only. */
export const modelOf = (dialect: Dialect) => `bench-${dialect}`;

/** A client's request, with a prompt of about so many bytes in turns of 25 kB at most. */
export function requestBody(client: Dialect, model: string, stream: boolean, bytes = 20): string {
  const line = 'const answer = await ask("what is it?"); // größe: 42\n\tif (!answer) return null;\n';
  const count = Math.max(1, Math.ceil(bytes / 25_000));
  const text = line.repeat(Math.ceil(Math.min(bytes, 25_000) / line.length)).slice(0, Math.min(bytes, 25_000));
  const turns = Array.from({ length: count }, (_, at) => ({
    role: (count - at) % 2 === 1 ? "user" : "assistant",
    content: text,
  }));
  if (client === "responses") return JSON.stringify({ model, stream, store: false, input: turns });
  if (client === "messages") return JSON.stringify({ model, stream, max_tokens: 1000, messages: turns });
  return JSON.stringify({
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    messages: turns,
  });
}

interface Frames {
  begin: string;
  /** @param at How many came before. */
  words(at: number): string;
  end: string;
  full: string;
}

const chatChunk = (model: string, members: object) =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1785000000, model, ...members })}\n\n`;
const named = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** @param rotating Whether each event of a responses stream calls its item by another id, as Copilot does. */
export function framesOf(dialect: Dialect, rotating: boolean): Frames {
  const model = modelOf(dialect);
  if (dialect === "chat") {
    const usage = { prompt_tokens: 912, completion_tokens: 400, total_tokens: 1312 };
    return {
      begin: chatChunk(model, {
        choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
      }),
      words: (at) =>
        chatChunk(model, {
          system_fingerprint: "fp_0",
          choices: [{ index: 0, delta: { content: ` word${at % 10}` }, finish_reason: null, logprobs: null }],
          usage: null,
        }),
      end: `${chatChunk(model, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}${chatChunk(model, { choices: [], usage })}data: [DONE]\n\n`,
      full: JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion",
        created: 1785000000,
        model,
        choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
        usage,
      }),
    };
  }
  if (dialect === "messages") {
    const message = { id: "msg_1", type: "message", role: "assistant", model };
    const usage = { input_tokens: 912, output_tokens: 400 };
    return {
      begin:
        named({
          type: "message_start",
          message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage },
        } as never) +
        named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as never),
      words: (at) =>
        named({
          type: "content_block_delta",
          index: 0,
          delta: { type: "text_delta", text: ` word${at % 10}` },
        } as never),
      end:
        named({ type: "content_block_stop", index: 0 } as never) +
        named({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage } as never) +
        named({ type: "message_stop" }),
      full: JSON.stringify({
        ...message,
        content: [{ type: "text", text: "Hello." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage,
      }),
    };
  }
  const item = (text: string, status: string) => ({
    id: "msg_0123456789abcdef",
    type: "message",
    status,
    role: "assistant",
    content: text === "" ? [] : [{ type: "output_text", text, annotations: [] }],
  });
  const response = (status: string, output: object[], usage: object | null) => ({
    id: "resp_1",
    object: "response",
    created_at: 1785000000,
    status,
    model,
    output,
    usage,
  });
  const usage = { input_tokens: 912, output_tokens: 400, total_tokens: 1312 };
  const part = { type: "output_text", text: "", annotations: [] };
  const place = { item_id: "msg_0123456789abcdef", output_index: 0, content_index: 0 };
  return {
    begin:
      named({ type: "response.created", sequence_number: 0, response: response("in_progress", [], null) } as never) +
      named({
        type: "response.output_item.added",
        sequence_number: 1,
        output_index: 0,
        item: item("", "in_progress"),
      } as never) +
      named({ type: "response.content_part.added", sequence_number: 2, ...place, part } as never),
    words: (at) =>
      named({
        type: "response.output_text.delta",
        sequence_number: 3 + at,
        ...place,
        ...(rotating ? { item_id: `msg_${String(at).padStart(16, "0")}` } : {}),
        delta: ` word${at % 10}`,
      } as never),
    end:
      named({ type: "response.output_text.done", sequence_number: 999_999, ...place, text: "" } as never) +
      named({
        type: "response.output_item.done",
        sequence_number: 999_999,
        output_index: 0,
        item: item("Hello.", "completed"),
      } as never) +
      named({
        type: "response.completed",
        sequence_number: 999_999,
        response: response("completed", [item("Hello.", "completed")], usage),
      } as never),
    full: JSON.stringify(response("completed", [item("Hello.", "completed")], usage)),
  };
}
