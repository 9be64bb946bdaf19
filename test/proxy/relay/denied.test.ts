/**
 * Scenario: an account is refused a model that its list names: one model, or every one because its organization does
 * not allow this client.
 */
import { describe, expect, test } from "bun:test";
import { type DemoAccount, demoAccounts } from "../../../src/demo/accounts";
import type { SeenRequest } from "../../../src/demo/demo";
import { type RunningProxy, startProxy } from "../../support/proxy";

const premium = "claude-sonnet-4.6";
const other = "gpt-5.3-codex";
const chat = "/chat/completions";

/** What an organization allows to an account, which its list of models does not show. */
interface Rights {
  /** The integration ids of the clients that it allows; all when missing. */
  clients?: string[];
  /** How other clients are refused. */
  denial?: keyof typeof denials;
  /** The models that the client's integration may use; all when missing. */
  offered?: string[];
  /** Models that a policy excludes. */
  excluded?: string[];
  /** A host that answers 403 instead of 421, as seen with Business seats in direct mode. */
  deniedAt?: "individual";
}

const refusal = (status: number, words: string) =>
  new Response(words, { status, headers: { "content-type": "text/plain; charset=utf-8" } });
const error = (code: string, message: string, more = {}) =>
  refusal(400, `${JSON.stringify({ error: { message, code, ...more } })}\n`);

const denials = {
  "403-words": () => refusal(403, "unauthorized: not authorized to use this Copilot feature\n"),
  "403-empty": () => new Response(null, { status: 403 }),
  "400-model": () =>
    error("model_not_supported", "The requested model is not supported.", {
      param: "model",
      type: "invalid_request_error",
    }),
};

function refusalBy(rights: Rights, { headers, body, host }: SeenRequest): Response | undefined {
  const { clients, denial = "403-words", offered, excluded, deniedAt } = rights;
  const client = headers["copilot-integration-id"] ?? "";
  const { model } = body as { model: string };
  if (host === deniedAt) return denials["403-words"]();
  if (clients && !clients.includes(client)) return denials[denial]();
  if (offered && !offered.includes(model)) {
    const words = `The requested model is not available for integrator "${client}". Available models: [${offered.join(" ")}].`;
    const advice = "Verify the correct Copilot-Integration-Id header is being sent.";
    return error("model_not_available_for_integrator", `${words} ${advice}`);
  }
  return excluded?.includes(model)
    ? error(
        "no_available_model_endpoints",
        "no endpoints available for this model under your current plan and policies",
      )
    : undefined;
}

type Change = Partial<DemoAccount> & { rights?: Rights };

/** Runs with these accounts of the demo, changed as given; a test may change their rights later. */
async function start(changes: Record<string, Change>, config: object = {}) {
  const accounts = demoAccounts().flatMap((account) => {
    const { rights: _, ...change } = changes[account.login] ?? {};
    return account.login in changes ? [{ ...account, ...change }] : [];
  });
  const proxy = await startProxy({ demo: { accounts }, config });
  proxy.demo.intercept(
    /^\/(?:chat\/completions|responses|v1\/messages)$/,
    (seen) => refusalBy(changes[seen.account!]?.rights ?? {}, seen),
    Number.POSITIVE_INFINITY,
  );
  return proxy;
}

async function post(proxy: RunningProxy, model: string, content = "Hello") {
  const response = await proxy.post("/v1/chat/completions", { model, messages: [{ role: "user", content }] });
  const { error } = (await response.json()) as { error?: { message: string; code: string } };
  return { status: response.status, headers: response.headers, error };
}

const modelPaths = new Set([chat, "/responses", "/v1/messages"]);
/** Who was asked for a model, in order. */
const asked = ({ demo }: RunningProxy) =>
  demo.journal
    .filter(({ path, method }) => method === "POST" && modelPaths.has(path))
    .map(({ account }) => account!.replace("-demo", ""));
const logged = (proxy: RunningProxy, words: RegExp) => proxy.lines.filter((line) => words.test(line));

describe.each(["403-words", "403-empty", "400-model"] as const)(
  "a client that is not allowed hears %s, and",
  (denial) => {
    const denied = { rights: { clients: ["copilot-developer-cli"], denial } };

    test("the second model that is refused tells of the organization and of upstreamHeaders", async () => {
      await using proxy = await start({ "octo-demo": denied });
      const first = await post(proxy, premium);
      expect(first.error!.message).not.toContain("organization may not allow this client");
      expect(first).toMatchObject(
        denial === "400-model"
          ? { status: 404, error: { code: "model_not_found" } }
          : { status: 403, error: { code: "model_not_allowed" } },
      );
      for (const model of [other, premium]) {
        const answer = await post(proxy, model);
        expect([answer.status, answer.headers.get("x-should-retry"), answer.error!.code]).toEqual([
          424,
          "false",
          "client_not_allowed",
        ]);
        expect(answer.error!.message).toContain("GitHub refused octo-demo every model that it was asked for");
        expect(answer.error!.message).toContain("organization may not allow this client: ask its admin");
        expect(answer.error!.message).toContain("`upstreamHeaders`");
      }
      // No other product's id is sent unasked, and the account is not disabled.
      expect(new Set(proxy.demo.journal.flatMap(({ headers }) => headers["copilot-integration-id"] ?? []))).toEqual(
        new Set(["vscode-chat"]),
      );
      expect(proxy.app.accounts[0]!.state.name).toBe("ready");
    });

    test("the next account serves at once after the second refusal", async () => {
      await using proxy = await start({ "octo-demo": denied, "work-demo": {} });
      for (const model of [premium, other, premium, "gemini-3.1-pro-preview"])
        expect((await post(proxy, model)).status).toBe(200);
      const tries = denial === "400-model" ? ["octo"] : ["octo", "octo"];
      expect(asked(proxy)).toEqual([...tries, "work", ...tries, "work", "work", "work"]);
    });

    test("an id in upstreamHeaders that the organization allows is served", async () => {
      const upstreamHeaders = { "copilot-integration-id": "copilot-developer-cli" };
      await using proxy = await start({ "octo-demo": denied }, { upstreamHeaders });
      expect((await post(proxy, premium)).status).toBe(200);
    });
  },
);

test("one model that is refused among others that are served says nothing about the organization", async () => {
  await using proxy = await start({ "octo-demo": { rights: { excluded: [premium, other] } } });
  expect((await post(proxy, "gemini-3.1-pro-preview")).status).toBe(200);
  for (const model of [premium, other]) {
    const { status, error } = await post(proxy, model);
    expect([status, error!.code]).toEqual([404, "model_not_available"]);
    expect(error!.message).toContain(
      "no endpoints available for this model under your current plan and policies. The account's plan, or a policy",
    );
  }
  expect((await post(proxy, "gemini-3.1-pro-preview")).status).toBe(200);
  expect(proxy.app.accounts[0]!.state.name).toBe("ready");
});

test("a model of other integrations goes to the next account, from then on at once, and the log has the models that GitHub names", async () => {
  const offered = ["gpt-5-mini", "raptor-mini"];
  await using proxy = await start({ "octo-demo": { rights: { offered } }, "work-demo": {} });
  for (let turn = 0; turn < 2; turn++) expect((await post(proxy, premium)).status).toBe(200);
  expect(asked(proxy)).toEqual(["octo", "work", "work"]);
  expect(
    logged(proxy, /refused octo-demo the model claude-sonnet-4\.6.*It would serve: gpt-5-mini, raptor-mini\./),
  ).toHaveLength(1);
});

test("the only account is asked again for a model that it was refused, so that the client reads why", async () => {
  const account: Change = { rights: { offered: ["gpt-5-mini"] } };
  await using proxy = await start({ "octo-demo": account });
  for (let turn = 0; turn < 2; turn++) {
    const { status, error } = await post(proxy, premium);
    expect([status, error!.code]).toEqual([404, "model_not_available"]);
    expect(error!.message).toContain("clients of another sign-in app or integration id only. Use another model");
  }
  account.rights = {};
  expect((await post(proxy, premium)).status).toBe(200);
});

test.each([
  ["/v1/messages", 424],
  ["/v1/responses", 400],
])(
  "at %s a model that a person must enable first is answered with a status that clients show",
  async (path, status) => {
    await using proxy = await start({ "octo-demo": { rights: { excluded: [premium] } } });
    const body = { model: premium, max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };
    const answer = await proxy.post(path, path === "/v1/messages" ? body : { model: premium, input: "Hello" });
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([status, "false"]);
  },
);

test("Codex, which asks again six times after a 403, gets 400 for a model that a person must enable first", async () => {
  await using proxy = await start({ "octo-demo": { rights: { clients: [] } } });
  const answer = await proxy.post("/v1/responses", { model: premium, input: "Hello" });
  expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([400, "false"]);
});

test("a 403 of a single replica is not seen by the client: the request is sent once more", async () => {
  for (const login of ["octo-demo", "plus-demo"]) {
    await using proxy = await start({ [login]: {} });
    expect((await post(proxy, premium, "[demo: 403-empty once] Hello")).status).toBe(200);
    expect(asked(proxy)).toHaveLength(2);
  }
});

test("a 403 that lasts is sent to GitHub twice, as an agent's the second time", async () => {
  await using proxy = await start({ "octo-demo": {} });
  const { status, error } = await post(proxy, premium, "[demo: 403] Hello");
  expect([status, error!.message]).toEqual([
    403,
    expect.stringContaining("may have to be enabled for the account first"),
  ]);
  const sent = proxy.demo.journal.filter(({ path, method }) => method === "POST" && modelPaths.has(path));
  expect(sent.map(({ headers }) => headers["x-initiator"])).toEqual(["user", "agent"]);
});

const seat: Change = { plan: "business", host: "business", rights: { deniedAt: "individual" } };
const hosts = ({ demo }: RunningProxy) =>
  demo.journal.filter(({ path, method }) => method === "POST" && modelPaths.has(path)).map(({ host }) => host);

test("a Business seat whose GitHub token is used directly, where the general host answers 403, is served at its own host from the first request on", async () => {
  await using proxy = await start({ "plus-demo": seat });
  expect((await post(proxy, premium)).status).toBe(200);
  expect(hosts(proxy)).toEqual(["business"]);
});

test("a Business seat whose GitHub token is used directly, where the general host answers 403, is served after it was moved there, at the price of one 403", async () => {
  const account: Change = { plan: "business" };
  await using proxy = await start({ "plus-demo": account });
  expect((await post(proxy, premium)).status).toBe(200);
  Object.assign(proxy.demo.accounts[0]!, { host: "business" });
  account.rights = seat.rights;
  for (let turn = 0; turn < 2; turn++) expect((await post(proxy, premium)).status).toBe(200);
  expect(hosts(proxy)).toEqual(["individual", "individual", "business", "business"]);
  expect(JSON.parse(proxy.rows()[1]!.attempts).map(({ status }: { status: number }) => status)).toEqual([403, 200]);
});
