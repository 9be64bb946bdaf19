/**
 * Property: a conversation whose reasoning only one account can read stays with the account that served its last turn,
 * as long as that one works: which account served each turn follows a small model of the rule, whatever fails.
 */
import { describe, expect, test } from "bun:test";
import type { Json } from "../../support/json";
import fc, { triesOf } from "../../support/random";
import { type TimedProxy, timed } from "./bench";

const logins = ["octo-demo", "work-demo", "plus-demo"];
const demo = { generation: "C" } as const;
const claude = "claude-sonnet-5.5";
const gpt = "gpt-6.2-sol";

/** A client with its conversation. */
interface Talk {
  /** Whether its model's reasoning is bound to an account. */
  isBound: boolean;
  ask(proxy: TimedProxy): Promise<Response>;
}

let made = 0;
/** No two begin in the same way. */
const opening = () => `Conversation ${++made}.`;

/** It thinks in each turn, or the client leaves thinking out of what it sends back. */
function messagesTalk(model: string, keepsThinking: boolean, session?: string): Talk {
  const turns: Json[] = [{ role: "user", content: opening() }];
  const thinking = { type: "adaptive", display: "summarized" };
  return {
    isBound: model === claude,
    async ask(proxy) {
      const answer = await proxy.post(
        "/v1/messages",
        { model, max_tokens: 4000, messages: turns, ...(model === claude && { thinking }) },
        { headers: session ? { "x-claude-code-session-id": session } : {} },
      );
      if (!answer.ok) return answer;
      const { content }: Json = await answer.json();
      const kept = content.filter(({ type }: Json) => keepsThinking || type !== "thinking");
      turns.push({ role: "assistant", content: kept }, { role: "user", content: "Go on." });
      return answer;
    },
  };
}

/** It thinks in every second turn. */
function responsesTalk(key?: string): Talk {
  const person = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
  const input: Json[] = [person(`${opening()} Think about it.`)];
  let turn = 0;
  return {
    isBound: true,
    async ask(proxy) {
      const include = ["reasoning.encrypted_content"];
      const answer = await proxy.post("/v1/responses", {
        model: gpt,
        input,
        store: false,
        include,
        prompt_cache_key: key,
      });
      if (!answer.ok) return answer;
      const { output }: Json = await answer.json();
      expect(output.some(({ type }: Json) => type === "reasoning")).toBe(turn % 2 === 0);
      input.push(...output, person(++turn % 2 === 0 ? "Think again." : "Go on."));
      return answer;
    },
  };
}

function chatTalk(): Talk {
  const messages: Json[] = [{ role: "user", content: opening() }];
  return {
    isBound: true,
    async ask(proxy) {
      const answer = await proxy.post("/v1/chat/completions", { model: gpt, messages });
      if (!answer.ok) return answer;
      const { choices }: Json = await answer.json();
      messages.push({ role: "assistant", content: choices[0].message.content }, { role: "user", content: "Go on." });
      return answer;
    },
  };
}

const makers: [name: string, make: () => Talk][] = [
  ["Claude's own client, with a session", () => messagesTalk(claude, true, "session-1")],
  ["another conversation of that session", () => messagesTalk(claude, true, "session-1")],
  ["a client that keeps no thinking", () => messagesTalk(claude, false)],
  ["a client of the Responses API, with a cache key", () => responsesTalk("key-1")],
  ["a client of the Responses API", () => responsesTalk()],
  ["a client of chat completions", () => chatTalk()],
  ["a model whose reasoning is bound to nobody", () => messagesTalk("claude-sonnet-4.6", true)],
];

/** The rule. */
class Model {
  /** Until when (ms) each account cannot serve. */
  readonly until = logins.map(() => 0);
  /** Accounts that will refuse the next request they get. */
  readonly refusing = new Set<number>();
  readonly last = new Map<Talk, number>();

  /** Who is asked for the turn, in order; the last one serves it, if it can. */
  asked(talk: Talk, now: number): { asked: number[]; server: number | undefined } {
    const able = logins.flatMap((_, at) => (this.until[at]! <= now ? [at] : []));
    const last = this.last.get(talk);
    const order =
      talk.isBound && last !== undefined && able.includes(last) ? [last, ...able.filter((at) => at !== last)] : able;
    const asked: number[] = [];
    for (const at of order) {
      asked.push(at);
      if (!this.refusing.delete(at)) {
        this.last.set(talk, at);
        return { asked, server: at };
      }
      this.until[at] = now + limitMs;
    }
    return { asked, server: undefined };
  }
}

const limitMs = 20_000;
type Event = [what: "rest" | "quota" | "refuse" | "pass" | "nothing", account: number];

function happen(proxy: TimedProxy, model: Model, [what, at]: Event): void {
  if (what === "pass") proxy.pass(limitMs);
  if (what === "refuse") model.refusing.add(at);
  if (what !== "rest" && what !== "quota") return;
  const until = proxy.now() + limitMs;
  const account = proxy.app.accounts[at]!;
  account.setState({ name: what === "rest" ? "cooling" : "exhausted", until, reason: "For a test." });
  // An account that is limited already stays so for as long as was said last.
  model.until[at] = until;
}

const events: fc.Arbitrary<Event> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Event>(["nothing", 0]) },
  { weight: 2, arbitrary: fc.constant<Event>(["pass", 0]) },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom("rest" as const, "quota" as const, "refuse" as const), fc.nat(2)) },
);
const courses = fc.array(fc.tuple(events, fc.nat(makers.length - 1)), { minLength: 30, maxLength: 60 });

test("whatever fails, each turn of many conversations goes where the rule says", async () => {
  await fc.assert(
    fc.asyncProperty(courses, async (course) => {
      await using proxy = await timed({ accounts: logins, demo });
      // The first look at what GitHub counts would end a quota that is used up.
      await Promise.all(proxy.app.accounts.map((account) => account.quota()));
      const model = new Model();
      const talks = makers.map(([, make]) => make());
      proxy.demo.intercept(
        /^\/(chat\/completions|responses|v1\/messages)$/,
        ({ account, body }) => {
          const at = logins.indexOf(account!);
          if (!pending.delete(at) || !(body as Json)?.model) return undefined;
          const error = { code: "user_global_rate_limited:pro", message: "Please wait a moment." };
          return Response.json({ error }, { status: 429, headers: { "retry-after": "20" } });
        },
        Number.POSITIVE_INFINITY,
      );
      const pending = new Set<number>();
      for (const [step, [event, place]] of course.entries()) {
        happen(proxy, model, event);
        pending.clear();
        for (const at of model.refusing) pending.add(at);
        const talk = talks[place]!;
        const { asked, server } = model.asked(talk, proxy.now());
        const answer = await talk.ask(proxy);
        const [row] = proxy.rows(1);
        const tried = (JSON.parse(row!.attempts) as { account: string }[]).map(({ account }) =>
          logins.indexOf(account),
        );
        const what = `step ${step}, ${makers[place]![0]}`;
        expect([what, answer.ok]).toEqual([what, server !== undefined]);
        // One account may be asked twice, the second time without another one's reasoning.
        expect([what, tried.filter((at, index) => at !== tried[index - 1])]).toEqual([what, asked]);
        if (server !== undefined) expect([what, row!.account_id]).toEqual([what, logins[server]!]);
      }
    }),
    { numRuns: triesOf(12) },
  );
}, 60_000);

describe("a conversation", () => {
  const served = (proxy: TimedProxy) => proxy.rows(1)[0]!.account_id;
  const rest = (proxy: TimedProxy, at: number) =>
    proxy.app.accounts[at]!.setState({ name: "cooling", until: proxy.now() + limitMs, reason: "For a test." });

  test("that begins like another one of the same client does not follow it", async () => {
    await using proxy = await timed({ accounts: logins, demo });
    const ask = (text: string) =>
      proxy.post("/v1/chat/completions", { model: gpt, messages: [{ role: "user", content: text }] });
    rest(proxy, 0);
    await ask("Hello.");
    expect(served(proxy)).toBe("work-demo");
    proxy.pass(limitMs);
    await ask("Hello.");
    expect(served(proxy)).toBe("octo-demo");
  });

  test("is remembered by a hash: nothing of what was said", async () => {
    await using proxy = await timed({ accounts: logins, demo });
    const marks: string[] = [];
    const { affinity } = proxy.app;
    const remember = affinity.remember.bind(affinity);
    affinity.remember = (mark, account) => {
      marks.push(mark);
      remember(mark, account);
    };
    await chatTalk().ask(proxy);
    expect(marks).toEqual([expect.stringMatching(/^conversation -?\d+$/)]);
  });
});
