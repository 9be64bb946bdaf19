/**
 * Tools that run while the model answers. The model has functions in their place. When it has called some, they run here,
 * and the upstream is asked to go on; the client gets all of that as one reply.
 */

import type { Turn } from "../../dialects/hub/conversation";
import type { Block, ReplyEvent, Usage } from "../../dialects/hub/reply";
import type { ServerToolName } from "../../dialects/hub/searches";
import type { ServerToolCall, ServerToolOffer, ServerToolOutput, WebPage } from "../../dialects/hub/server-tools";
import { isObject, parseJson } from "../../lib/json";
import type { Sink } from "../../lib/net/stream/stream";
import { citationsIn } from "./citations";
import { collectTurns } from "./reply-turns";

/** How often a tool may run for one reply where the client sets no limit. */
const defaultMaxUses = 5;
/** Whatever the client allows: each search is charged, and a model that repeats itself would not stop. */
const mostUses = 50;
/** How often the upstream is asked for one reply. */
const maxRounds = 12;

interface LoopOptions {
  /** The tools by the names of their functions. */
  tools: ReadonlyMap<string, ServerToolOffer>;
  run(call: ServerToolCall, offer: ServerToolOffer): Promise<ServerToolOutput>;
  next: Sink<ReplyEvent>;
}

/** A call that waits for its result, and the block that it is for the client. */
interface Running {
  call: ServerToolCall;
  output: Promise<ServerToolOutput>;
}

type Finish = Extract<ReplyEvent, { type: "finish" }>;

/** Takes the events of the upstream's answers, one after the other, and makes one reply of them. */
export class ServerToolLoop implements Sink<ReplyEvent> {
  readonly #options: LoopOptions;
  readonly #produced = collectTurns();
  readonly #uses = new Map<ServerToolName, number>();
  readonly #pages: WebPage[] = [];
  #rounds = 1;
  #hasStarted = false;
  #hasCalled = false;
  /** The function call that is being written. */
  #open: { id: string; name: string; input: string } | undefined;
  #block: Block | undefined;
  #text = "";
  /** The calls of the present answer whose results are not sent yet. */
  #running: { call: ServerToolCall; begin(): Promise<ServerToolOutput> }[] = [];
  #results: Running[] = [];
  #hasClientCalls = false;
  /** The tools that have reached their limits. */
  readonly #exceeded = new Set<ServerToolName>();
  /** The ids that calls have had in this reply: an upstream may give one to two of them. */
  readonly #ids = new Set<string>();
  /** The usage of the answers before, and of the present one. */
  #before: Partial<Usage> = {};
  #present: Partial<Usage> = {};
  /** The end of an answer that has called tools. */
  #held: Finish | undefined;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** The answer has ended, and something has to be done before the reply goes on: call `advance`. */
  get isWaiting(): boolean {
    return this.#held !== undefined;
  }

  /** The model has called one of the tools. */
  get hasCalled(): boolean {
    return this.#hasCalled;
  }

  /** What the model has said so far, for the next answer. */
  get produced(): Turn[] {
    return this.#produced.turns();
  }

  /** Whether the model may call the tool again. */
  readonly mayCall = (tool: ServerToolName): boolean => !this.#exceeded.has(tool) && this.#rounds < maxRounds;

  /**
   * Sends the next result to the client.
   * @returns Whether the upstream has to be asked to go on now.
   */
  async advance(): Promise<boolean> {
    const next = this.#results.shift();
    if (next) {
      const { id, tool, isHidden } = next.call;
      const output = await next.output;
      if (output.kind === "pages") this.#pages.push(...output.pages);
      this.#passComplete({ kind: "server-result", id, tool, output, ...(isHidden ? { isHidden } : {}) });
      return false;
    }
    const held = this.#held;
    if (!held) return false;
    this.#held = undefined;
    // The client has to run its own tools first.
    const isOver = this.#hasClientCalls || this.#rounds >= maxRounds;
    if (isOver) this.#options.next.push(this.#hasClientCalls ? held : { type: "finish", reason: "pause" });
    else this.#rounds++;
    return !isOver;
  }

  push(event: ReplyEvent) {
    if (this.#held) return;
    switch (event.type) {
      case "start":
        if (this.#hasStarted) return;
        this.#hasStarted = true;
        return this.#pass(event);
      case "block-start":
        return this.#beginBlock(event);
      case "block-delta":
        if (this.#open) this.#open.input += event.text;
        else {
          if (this.#block?.kind === "text") this.#text += event.text;
          this.#pass(event);
        }
        return;
      case "block-end":
        return this.#endBlock(event);
      case "usage":
        Object.assign(this.#present, event.usage);
        return this.#options.next.push({ type: "usage", usage: sum(this.#before, this.#present) });
      case "finish":
        return this.#finish(event);
      case "error":
        this.#running = [];
        return this.#options.next.push(event);
    }
  }

  end() {
    this.#options.next.end();
  }

  #pass(event: ReplyEvent) {
    this.#produced.push(event);
    this.#options.next.push(event);
  }

  #passComplete(block: Block) {
    this.#pass({ type: "block-start", block });
    this.#pass({ type: "block-end" });
  }

  #beginBlock(event: ReplyEvent & { type: "block-start" }) {
    const { block } = event;
    if (block.kind === "tool-call" && this.#options.tools.has(block.name)) {
      this.#open = { id: block.id, name: block.name, input: "" };
      this.#hasCalled = true;
      return;
    }
    if (block.kind === "tool-call") this.#hasClientCalls = true;
    this.#block = block;
    this.#text = "";
    this.#pass(event);
  }

  #endBlock(event: ReplyEvent & { type: "block-end" }) {
    const { tools, run } = this.#options;
    if (!this.#open) {
      const citations = this.#block?.kind === "text" ? citationsIn(this.#text, this.#pages) : [];
      return this.#pass(citations.length > 0 ? { ...event, citations } : event);
    }
    const { id, name, input } = this.#open;
    this.#open = undefined;
    const offer = tools.get(name)!;
    const parsed = parseJson(input);
    const call: ServerToolCall = {
      id: this.#callId(id),
      tool: offer.tool,
      input: isObject(parsed) ? parsed : {},
      ...(offer.isHidden ? { isHidden: true } : {}),
    };
    const uses = (this.#uses.get(offer.tool) ?? 0) + 1;
    this.#uses.set(offer.tool, uses);
    const isExceeded = uses > Math.min(offer.maxUses ?? defaultMaxUses, mostUses);
    if (isExceeded) this.#exceeded.add(offer.tool);
    this.#running.push({ call, begin: () => (isExceeded ? exceeded : run(call, offer)) });
  }

  /** The id of a call for client and upstream, made of the upstream's own. */
  #callId(upstreams: string): string {
    const given = callId(upstreams);
    const id = this.#ids.has(given) ? callId("") : given;
    this.#ids.add(id);
    return id;
  }

  #finish(event: Finish) {
    const running = this.#running;
    this.#running = [];
    if (running.length === 0) return this.#options.next.push(event);
    const isComplete = event.reason === "tool-call" || event.reason === "stop";
    // After all that the model said: clients expect the result of a call next.
    for (const { call } of running) this.#passComplete({ kind: "server-call", ...call });
    // They run at the same time; their results follow in the order of the calls.
    if (isComplete) {
      this.#results = running.map(({ call, begin }) => ({ call, output: begin() }));
      this.#held = event;
      this.#before = sum(this.#before, this.#present);
      this.#present = {};
      return;
    }
    for (const { call } of running)
      this.#passComplete({
        kind: "server-result",
        id: call.id,
        tool: call.tool,
        ...(call.isHidden ? { isHidden: true } : {}),
        output: { kind: "error", code: "unavailable" },
      });
    this.#options.next.push(event);
  }
}

const exceeded: Promise<ServerToolOutput> = Promise.resolve({ kind: "error", code: "max_uses_exceeded" });

/** Anthropic's form, which clients may check. Ids that an upstream counts differ at their ends. @param id Empty for a new one. */
const callId = (id: string): string =>
  `srvtoolu_${
    id
      .slice(-200)
      .replace(/^(?:toolu|call|fc)_/, "")
      .replaceAll(/\W/g, "")
      .slice(-24) || crypto.randomUUID().replaceAll("-", "").slice(0, 24)
  }`;

/** A number that is unknown in one stays as it is in the other. */
function sum(one: Partial<Usage>, other: Partial<Usage>): Partial<Usage> {
  const total = { ...one };
  for (const key of Object.keys(other) as (keyof Usage)[])
    if (other[key] !== undefined) total[key] = (total[key] ?? 0) + other[key];
  return total;
}
