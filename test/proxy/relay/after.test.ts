/**
 * Property: what follows after a failure: a reckoning that knows the table alone says for generated accounts, models
 * and answers who is called in which order and what the client gets. The running proxy must do the same.
 */
import { expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { after as afterOf, modelTrouble, type Step, type Trouble, table } from "../../../src/proxy/relay/after";
import { openChance, triesOf } from "../../support/random";
import { timed } from "./bench";

const after = (troubles: readonly Trouble[], isLeft: (step: Step) => boolean) => afterOf(troubles, { isLeft });

const ofTable = Object.entries(table) as [Trouble, (typeof table)[Trouble]][];

test("with nothing left the client gets the error; else the first step of the row follows", () => {
  for (const [trouble, { then }] of ofTable) {
    expect(after([trouble], () => false)).toBe("end");
    expect(after([trouble], () => true)).toBe(then[0] ?? "end");
    for (const step of then) expect(after([trouble], (each) => each === step)).toBe(step);
  }
});

test("a stop, a fault and a suspended account end the request whatever is left, with their own error", () => {
  const ends = ofTable.filter(([, { isOfRequest }]) => isOfRequest);
  expect(ends.map(([trouble]) => trouble)).toEqual(["stopped", "fault", "blocked"]);
  for (const [trouble] of ends) expect(after([trouble], () => true)).toBe("end");
});

test("the most particular trouble decides, and a more general one where nothing is left of that", () => {
  expect(after(["unable", "limited"], (step) => step !== "pause")).toBe("next account");
  expect(after(["unable", "limited"], (step) => step === "next model")).toBe("next model");
});

test("what an error of a model means for the others", () => {
  const none = { hasBegun: false, isBlocked: false, isUnasked: false };
  const error = (status: number, more: object = {}) => ({ kind: "upstream" as const, status, details: more });
  for (const status of [402, 429, 503, 529]) expect(modelTrouble(error(status), none)).toBe("limited");
  for (const status of [400, 404, 500, 502, 504]) expect(modelTrouble(error(status), none)).toBe("failed");
  expect(modelTrouble(error(429, { code: "budget_exceeded" }), none)).toBe("failed");
  expect(modelTrouble(error(429, { code: "budget_exceeded", mayFallBack: true }), none)).toBe("limited");
  expect(modelTrouble(error(429), { ...none, hasBegun: true })).toBe("begun");
  expect(modelTrouble(error(429), { ...none, hasBegun: true, isBlocked: true })).toBe("blocked");
  expect(modelTrouble({ ...error(500), kind: "internal" }, { ...none, isBlocked: true })).toBe("fault");
  expect(modelTrouble({ ...error(400), kind: "invalid_request" }, { ...none, isUnasked: true })).toBe("unfit");
  expect(modelTrouble({ ...error(400), kind: "invalid_request" }, none)).toBe("failed");
});

const [claude, gpt, free, provided, auto] = [
  "claude-sonnet-4.6",
  "gpt-5.3-codex",
  "gpt-5-mini",
  "own/m",
  "auto",
] as const;

/** What an upstream answers. A stale token is renewed once. */
const answers = {
  ok: undefined,
  quota: [402, "quota_exceeded", "600"],
  limit: [429, "user_global_rate_limited", "600"],
  "limit of the model": [429, "user_model_rate_limited:pro", "600"],
  overloaded: [429, "model_overloaded", undefined],
  refused: [400, "invalid_request_body", undefined],
  stale: [401, "", undefined],
} as const;
type Said = keyof typeof answers;

const refusal = ([status, code, after]: readonly [number, string, string | undefined]) =>
  Response.json(
    { error: { message: status === 401 ? "unauthorized: token expired" : "It is so.", ...(code && { code }) } },
    { status, headers: after === undefined ? {} : { "retry-after": after } },
  );

const providersReply = {
  ...{ id: "msg_1", type: "message", role: "assistant", model: "m", content: [{ type: "text", text: "Good day." }] },
  ...{ stop_reason: "end_turn", stop_sequence: null, usage: { input_tokens: 9, output_tokens: 3 } },
};

const minute = 60_000;
const states = {
  ready: { name: "ready" },
  limited: { name: "cooling", ms: 10 * minute, reason: "For a test." },
  failed: { name: "failed", reason: "For a test." },
} as const;

interface Scenario {
  states: (keyof typeof states)[];
  model: string;
  chain: string[] | undefined;
  /** What each account answers, and then serves. The provider's come last. */
  said: Said[][];
}

function scenario({ below, maybe, pick }: ReturnType<typeof openChance>): Scenario {
  const some = (most: number, ...said: Said[]) => Array.from({ length: below(most + 1) }, () => pick(...said));
  const any = () => some(3, "quota", "limit", "limit of the model", "overloaded", "overloaded", "refused", "ok");
  const model = () => pick<string>(claude, gpt, free, provided, auto);
  return {
    states: logins.map(() => pick("ready", "ready", "ready", "limited", "failed")),
    model: model(),
    chain: maybe(0.75) ? Array.from({ length: 1 + below(4) }, model) : undefined,
    said: [
      ...logins.map((): Said[] => (maybe(0.2) ? ["stale", ...any()] : any())),
      some(2, "overloaded", "refused", "ok"),
    ],
  };
}

const logins = ["one-demo", "two-demo", "three-demo"];

type Ended = "served" | "limited" | "failed";

/** Whoever is called, in order, and how the request ends. It asks `after` for each step. */
function reckon({ states: before, model: wanted, chain, said }: Scenario) {
  const calls: string[] = [];
  const accounts = before.map((state, at) => ({ at, state: state as string, limited: new Set<string>() }));
  const [left, ofProvider] = [said.slice(0, -1).map((each) => [...each]), [...said.at(-1)!]];
  type Account = (typeof accounts)[number];
  const canServe = ({ state, limited }: Account, model: string) =>
    !limited.has(model) && (state === "ready" || (state === "no quota" && model === free));

  /** The accounts of one model, as far as they may serve it. */
  function byAccounts(model: string, only?: Account): { ended: Ended; isOfAccount?: boolean } {
    const able = accounts.filter((each) => (!only || each === only) && canServe(each, model));
    const renewed = new Set<Account>();
    let next = 0;
    let final: Ended | undefined;
    const ask = (): Trouble | undefined => {
      const account = able[next - 1];
      if (!account) return "unable";
      calls.push(`${logins[account.at]} ${model}`);
      const answer = left[account.at]!.shift() ?? "ok";
      if (answer === "ok") return undefined;
      if (answer === "stale" && !renewed.has(account)) {
        renewed.add(account);
        return "mended";
      }
      if (answer === "overloaded") final = "limited";
      if (answer === "refused") final = "failed";
      if (final) return "failed";
      if (answer === "quota") account.state = model === free ? "nothing" : "no quota";
      else if (answer === "limit") account.state = "limited";
      else account.limited.add(model);
      return "unable";
    };
    for (let step: Step = "next account"; ; ) {
      if (step === "next account") next += 1;
      const trouble = ask();
      if (!trouble) return { ended: "served" };
      step = after([trouble], (each) => each === "again" || (each === "next account" && next < able.length));
      if (step === "end") return final ? { ended: final } : { ended: "limited", isOfAccount: true };
    }
  }

  /** Auto, whose choice is the free model, asks the account alone that chose. */
  function byAuto(): Ended {
    const [costly, cheap] = ["any that costs quota", free].map((model) =>
      accounts.filter((each) => canServe(each, model)),
    );
    const able = new Set([...costly!, ...cheap!]);
    for (const account of able) {
      const { ended, isOfAccount } = byAccounts(free, account);
      if (ended === "served") return ended;
      const troubles: Trouble[] = [...(isOfAccount ? (["unable"] as const) : []), ended];
      const isLast = account === [...able].at(-1);
      if (after(troubles, (step) => step === "next choice" && !isLast) === "end") return ended;
    }
    return "limited";
  }

  function byProvider(): Ended {
    calls.push(provided);
    const answer = ofProvider.shift() ?? "ok";
    return answer === "ok" ? "served" : answer === "refused" ? "failed" : "limited";
  }

  const asked = new Set([wanted]);
  const names = [...(chain ?? [])];
  let first: Ended | undefined;
  for (let model: string | undefined = wanted; model !== undefined; ) {
    const ended = model === auto ? byAuto() : model === provided ? byProvider() : byAccounts(model).ended;
    if (ended === "served") return { calls, ended };
    first ??= ended;
    if (after([ended], (step) => step === "next model" && chain !== undefined) === "end") break;
    model = names.find((name) => !asked.has(name));
    if (model === undefined || asked.size > 3) break;
    asked.add(model);
  }
  return { calls, ended: first };
}

test("whoever is called, and what the client gets, is what the table says", async () => {
  const chance = openChance("after");
  let calls: string[] = [];
  let said: Said[][] = [];
  using provider = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ method }) {
      if (method === "GET") return Response.json({ data: [] });
      calls.push(provided);
      const answer = answers[said.at(-1)!.shift() ?? "ok"];
      return answer ? refusal(answer) : Response.json(providersReply);
    },
  });
  const [like] = demoAccounts();
  const accounts = logins.map((login) => ({
    ...{ ...like!, login, githubToken: `ghu_${login}`, planToken: `pat_${login}`, quota: quotas.unlimited() },
    auto: { protocols: ["auto" as const], pool: [free] },
  }));
  await using proxy = await timed({
    demo: { accounts },
    config: {
      freeModelRouting: "in-order",
      providers: { own: { type: "anthropic", baseUrl: provider.url.origin, apiKey: "k-own-0123456789" } },
    },
  });
  proxy.demo.intercept(
    /^\/(?:chat\/completions|responses|v1\/messages)$/,
    ({ account = "", body }) => {
      calls.push(`${account} ${(body as { model: string }).model}`);
      const answer = answers[said[logins.indexOf(account)]!.shift() ?? "ok"];
      return answer && refusal(answer);
    },
    Number.POSITIVE_INFINITY,
  );
  for (let turn = 0; turn < triesOf(120); turn++) {
    const given = scenario(chance);
    proxy.pass(11 * minute);
    for (const [at, account] of proxy.app.accounts.entries()) {
      account.setState({ name: "ready" });
      const { ms, ...state } = { ms: undefined, ...states[given.states[at]!] };
      account.setState(ms === undefined ? state : ({ ...state, until: proxy.now() + ms } as never));
    }
    await proxy.app.config.change({ fallbacks: given.chain ? { [given.model]: given.chain } : {} });
    calls = [];
    said = structuredClone(given.said);
    const answer = await proxy.post("/v1/messages", {
      model: given.model,
      max_tokens: 100,
      messages: [{ role: "user", content: `Turn ${turn}.` }],
    });
    await answer.text();
    const ended = answer.ok ? "served" : answer.status === 400 ? "failed" : "limited";
    const found = { given, ended, calls };
    expect<unknown>(found).toEqual({ given, ...reckon(given) });
  }
});
