/**
 * A proxy before an upstream that answers what a test says, with one model for each dialect. What a client gets through it
 * is compared with what it would have got directly: what differs must be what the history names, and what it names must
 * differ.
 */
import { type Dialect, dialects } from "../../src/dialects/hub/conversation";
import { clientPaths, upstreamPaths } from "../../src/lib/api-paths";
import { offerOnly } from "./catalogue";
import type { Comparison } from "./differential";
import { differences, readEvents, readWithSource, streamDifferences, unexplained } from "./direct";
import { dialectAt } from "./log-capture";
import { type RunningProxy, startProxy } from "./proxy";

export const models: Record<Dialect, string> = {
  chat: "gpt-4.1",
  responses: "gpt-5.3-codex",
  messages: "claude-sonnet-4.6",
};

/** Tokens from which on a full reply has to be requested as a stream. */
export const fullOutput = 2000;

interface Told {
  status: number;
  text: string;
  /** What the history names. */
  fixups: string[];
  /** The reply ended well. */
  isGood: boolean;
}

export class OwnPairs implements AsyncDisposable {
  /** What the upstream was sent last; empty before the first request. */
  sent = "";
  /** What the upstream answers. */
  answer: (dialect: Dialect, isStream: boolean) => string = () => "";

  private constructor(readonly proxy: RunningProxy) {}

  static async start(): Promise<OwnPairs> {
    // A search that runs here makes another request of the client's.
    const pairs = new OwnPairs(await startProxy({ config: { webSearchModel: "off" } }));
    const { demo } = pairs.proxy;
    const limits = { max_non_streaming_output_tokens: fullOutput };
    offerOnly(
      demo,
      Object.fromEntries(dialects.map((dialect) => [models[dialect], [upstreamPaths[dialect]]])),
      undefined,
      limits,
    );
    demo.intercept(
      new RegExp(`^(${Object.values(upstreamPaths).join("|")})$`),
      ({ path, bytes }) => {
        pairs.sent = Buffer.from(bytes).toString();
        const isStream = JSON.parse(pairs.sent).stream === true;
        const type = isStream ? "text/event-stream" : "application/json";
        return new Response(pairs.answer(dialectAt[path]!, isStream), { headers: { "content-type": type } });
      },
      Number.POSITIVE_INFINITY,
    );
    return pairs;
  }

  async ask(dialect: Dialect, body: string): Promise<Told> {
    const response = await this.proxy.post(clientPaths[dialect], body);
    const text = await response.text();
    const row = this.proxy.rows()[0]!;
    const isGood = response.status === 200 && row.error_type === null;
    return { status: response.status, text, fixups: JSON.parse(row.fixups), isGood };
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.proxy[Symbol.asyncDispose]();
  }
}

/**
 * Compares what one side sent with what the other one got.
 * @param mayBeIdle Fixups that need not have changed anything that this comparison sees.
 */
export function compareDirect(
  comparison: Comparison,
  name: string,
  kind: "request" | "reply" | "stream",
  [before, after]: readonly [before: string, after: string],
  fixups: readonly string[],
  mayBeIdle: readonly string[] = [],
): void {
  const found =
    kind === "stream"
      ? streamDifferences(readEvents(before), readEvents(after))
      : differences(readWithSource(before), readWithSource(after), kind);
  const { unnamed, idle } = unexplained(found, fixups);
  const unseen = idle.filter((fixup) => !mayBeIdle.includes(fixup));
  comparison.same(name, { unnamed, idle: unseen }, { unnamed: [], idle: [] });
}
