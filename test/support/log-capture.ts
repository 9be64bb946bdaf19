/** What the upstream itself says, caught on its way and read by hand. */

import type { Demo, SeenRequest } from "../../src/demo/demo";
import type { ClientDialect, Dialect } from "../../src/dialects/hub/conversation";
import { readSse } from "../../src/lib/net/stream/sse";
import { run } from "../../src/lib/net/stream/stream";

interface Told {
  /** Tokens: `input` with what was cached, `output` with reasoning. Undefined where the dialect does not tell. */
  usage: { input: number; cached: number; written: number | undefined; output: number; reasoning: number | undefined };
  /** The wire's own word for why it ended. */
  stop: string;
}

export const dialectAt: Record<string, Dialect> = {
  "/chat/completions": "chat",
  "/responses": "responses",
  "/v1/messages": "messages",
};

export interface Tap {
  /** The last model request as the upstream got it. */
  seen(): SeenRequest;
  /** The bytes of its answer, once all have passed. */
  bytes(): Promise<string>;
  /** The same, read. */
  told(): Promise<Told>;
}

/** Listens between the proxy and the upstream. */
export function tap(demo: Demo): Tap {
  const marker = "x-tapped";
  let asked: SeenRequest | undefined;
  let answer: Promise<string> = Promise.resolve("");
  demo.intercept(
    /^\/(chat\/completions|responses|v1\/messages)$/,
    async (seen) => {
      if (seen.headers[marker]) return undefined;
      asked = seen;
      const { host, connection, "content-length": length, ...headers } = seen.headers;
      const response = await fetch(demo.url + seen.path, {
        method: "POST",
        headers: { ...headers, [marker]: "1" },
        body: seen.bytes,
      });
      demo.journal.splice(
        demo.journal.findLastIndex((each) => each.headers[marker]),
        1,
      );
      if (!response.body) return response;
      const [theirs, ours] = response.body.tee();
      answer = new Response(ours).text();
      return new Response(theirs, response);
    },
    Number.POSITIVE_INFINITY,
  );
  return {
    seen: () => asked!,
    bytes: () => answer,
    async told() {
      const text = await answer;
      const isStream = !text.startsWith("{");
      const bodies: Json[] = isStream
        ? run(readSse, [new TextEncoder().encode(text)]).flatMap(({ data }) =>
            data && data !== "[DONE]" ? [JSON.parse(data)] : [],
          )
        : [JSON.parse(text)];
      return readers[dialectAt[asked!.path]!](bodies);
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: three wires, read as they come
type Json = any;

const readers: Record<Dialect, (bodies: Json[]) => Told> = {
  chat(bodies) {
    const usage = bodies.findLast((body) => body.usage)?.usage;
    const choices: Json[] = bodies.flatMap((body) => body.choices ?? []);
    return {
      usage: {
        input: usage.prompt_tokens,
        cached: usage.prompt_tokens_details.cached_tokens,
        // OpenAI's name, or Copilot's for Claude.
        written:
          usage.prompt_tokens_details.cache_write_tokens ?? usage.prompt_tokens_details.cache_creation_input_tokens,
        output: usage.completion_tokens,
        reasoning: usage.completion_tokens_details?.reasoning_tokens,
      },
      stop: choices.findLast((choice) => choice.finish_reason)?.finish_reason,
    };
  },
  responses(bodies) {
    const response = bodies.at(-1).response ?? bodies.at(-1);
    return {
      usage: {
        input: response.usage.input_tokens,
        cached: response.usage.input_tokens_details.cached_tokens,
        written: response.usage.input_tokens_details.cache_write_tokens,
        output: response.usage.output_tokens,
        reasoning: response.usage.output_tokens_details?.reasoning_tokens,
      },
      stop: response.incomplete_details?.reason ?? response.status,
    };
  },
  messages(bodies) {
    const { usage, delta, stop_reason } = bodies.findLast((body) => body.type !== "message_stop");
    return {
      usage: {
        input: usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens,
        cached: usage.cache_read_input_tokens,
        written: usage.cache_creation_input_tokens,
        output: usage.output_tokens,
        reasoning: usage.output_tokens_details?.thinking_tokens,
      },
      stop: delta?.stop_reason ?? stop_reason,
    };
  },
};

/** The same numbers as a client of the dialect must see them, by that dialect's own definition. */
export function usageFor(client: ClientDialect, { usage }: Told): object {
  const { input, cached, written, output, reasoning } = usage;
  switch (client) {
    case "chat":
      return {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: cached },
        ...(reasoning && { completion_tokens_details: { reasoning_tokens: reasoning } }),
      };
    case "responses":
      return {
        input_tokens: input,
        input_tokens_details: { cached_tokens: cached, cache_write_tokens: written ?? 0 },
        output_tokens: output,
        ...(reasoning !== undefined && { output_tokens_details: { reasoning_tokens: reasoning } }),
        total_tokens: input + output,
      };
    case "messages":
      return {
        input_tokens: input - cached - (written ?? 0),
        cache_read_input_tokens: cached,
        ...(written !== undefined && { cache_creation_input_tokens: written }),
        output_tokens: output,
      };
    case "gemini":
      return {
        promptTokenCount: input,
        cachedContentTokenCount: cached,
        candidatesTokenCount: output - (reasoning ?? 0),
        ...(reasoning !== undefined && { thoughtsTokenCount: reasoning }),
        totalTokenCount: input + output,
      };
  }
}
