/** Scenario: what leaves by the side door: logs, files, error bodies. */
import { expect, spyOn, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { adminEndpoints } from "../../src/admin/api/plugin";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { demoAccounts } from "../../src/demo/accounts";
import { createLogger } from "../../src/lib/logger";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { clients } from "../../src/routes/clients";
import { keptLog } from "../people/accounts/bench";
import { run } from "../support/command";
import { postJson } from "../support/post-json";
import { startProvider } from "../support/provider";
import { startProxy } from "../support/proxy";
import { sendRaw } from "../support/raw-socket";
import { fullReply, fullRequests, parts, words } from "./full-requests";

/** Each of a shape that no pattern knows, so that only the rule itself can keep it in. */
const canaries = {
  clientKey: "zq-client-canary-4711-key",
  adminToken: "zq-admin-canary-4711-token",
  providerKey: "zq-provider-canary-4711-key",
  anthropicKey: "zq-anthropic-canary-4711-key",
  prompt: "zq-prompt-canary-4711",
  toolArguments: "zq-arguments-canary-4711",
  filePath: "/home/zq-path-canary-4711/secret.txt",
  cookie: "zq-cookie-canary-4711",
  query: "zq-query-canary-4711",
  userAgent: "zq-agent-canary-4711",
};

/** Every path that can be read, with ids of what there is. */
function readablePaths(ids: { request: string; prompt: string }): string[] {
  const all = [...pageEndpoints(), ...adminEndpoints(), ...clients.routes].filter(({ method }) => method === "GET");
  const paths = all.map(({ path }) =>
    path
      .replace(/(?<=prompts\/):id/, ids.prompt)
      .replace(/(?<=requests\/):(?:id|requestId)/, ids.request)
      .replace(/:\w+|\*/g, "1"),
  );
  // It is there to hand out a token.
  return [...new Set(paths)].filter((path) => path !== "/token");
}

const spellings = (secret: string) =>
  [secret, Buffer.from(secret, "utf16le").toString("latin1"), btoa(secret), encodeURIComponent(secret)].map((each) =>
    each.replace(/=+$/, ""),
  );

test("no secret and no word of a conversation is in any line, file, error or page, over 40 scenarios at debug", async () => {
  await using provider = startProvider({ key: canaries.providerKey, auth: "x-api-key" });
  await using proxy = await startProxy({
    accounts: demoAccounts().map(({ login }) => login),
    config: {
      logLevel: "debug",
      auth: { apiKeys: [canaries.clientKey] },
      providers: {
        good: { type: "anthropic", baseUrl: provider.url, apiKey: canaries.providerKey },
        dead: { type: "anthropic", baseUrl: "http://127.0.0.1:9", apiKey: canaries.providerKey },
      },
    },
    env: {
      ADMIN_TOKEN: canaries.adminToken,
      ANTHROPIC_API_KEY: canaries.anthropicKey,
      DRAGOMAN_ANTHROPIC_API_URL: "http://127.0.0.1:9",
    },
  });
  const headers = {
    "x-api-key": canaries.clientKey,
    cookie: canaries.cookie,
    "user-agent": `${"client/1.0"} (${canaries.userAgent})`,
  };
  const errors: string[] = [];
  let scenarios = 0;
  const send = async (path: string, body: unknown, more: Record<string, string> = {}) => {
    scenarios++;
    const response = await proxy.post(`${path}?x=${canaries.query}`, body, { headers: { ...headers, ...more } });
    const text = await response.text();
    if (!response.ok) errors.push(text);
    return text;
  };
  const content = (order: string) => `${order} ${canaries.prompt} ${canaries.filePath}`;
  const faults = [
    ...["", "[demo: 400-body]", "[demo: 401-pat once]", "[demo: 422]", "[demo: 500]", "[demo: 502-html]"],
    ...["[demo: 529]", "[demo: html]", "[demo: reset]", "[demo: cut 3]", "[demo: bad-json]", "[demo: error-event]"],
  ];
  for (const fault of faults) {
    const messages = [{ role: "user", content: content(fault) }];
    for (const stream of [false, true]) {
      await send("/v1/chat/completions", { model: "gpt-5-mini", stream, messages });
      await send("/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 50, stream, messages });
      await send("/v1/responses", { model: "gpt-5.3-codex", stream, input: content(fault) });
    }
  }
  // What a prompt is made of is measured, and what changed in it is named: sizes, and names of declared tools.
  const [path, full] = fullRequests(words)[0] as [string, { tools: object[] }];
  const declared = ["read_file", "mcp__s__do", "write_file"].map((name) => ({ ...full.tools[0], name }));
  for (const tools of [declared, declared.slice(1), declared])
    for (const called of ["read_file", canaries.toolArguments, `${canaries.prompt} now`]) {
      const text = JSON.stringify({ ...full, tools }).replace(
        '"id":"t1","name":"read_file"',
        `"id":"t1","name":"${called}"`,
      );
      await send(path, JSON.parse(text), { "x-claude-code-session-id": "a-session" });
    }
  const claude = { "x-claude-code-session-id": "full", "x-claude-code-prompt-id": "full" };
  for (const [path, body] of fullRequests(words)) await send(path, body, claude);
  proxy.demo.intercept("/v1/messages", () => Response.json(fullReply(words)));
  const told = await send("/v1/messages", { ...fullRequests(words)[0]![1], stream: false }, claude);
  for (const part of ["reply", "thoughts", "called"] as const) expect(told).toContain(words[part]);
  const sentUp = proxy.demo.journal.map(({ bytes }) => new TextDecoder().decode(bytes)).join("");
  for (const part of parts.slice(0, -3)) expect(sentUp).toContain(words[part]);
  await send("/v1/messages", `{"model": "${canaries.prompt}`);
  await send("/v1/messages", { model: "claude-sonnet-4.6", max_tokens: "x", messages: canaries.prompt });
  const asked = { model: "m", max_tokens: 9, messages: [{ role: "user", content: canaries.prompt }] };
  await send("/v1/messages/count_tokens", { ...asked, model: "claude-sonnet-4.6" });
  await send("/v1/embeddings", { model: "text-embedding-3-small", input: canaries.prompt });
  const contents = [{ role: "user", parts: [{ text: canaries.prompt }] }];
  const google = (call: string) => `/v1beta/models/claude-sonnet-4.6:${call}`;
  await send(google("generateContent"), { contents });
  await send(google("generateContent"), { contents: canaries.prompt });
  await send(google("streamGenerateContent?alt=sse"), { contents: [{ parts: [{ text: content("[demo: 422]") }] }] });
  await send(google(`generateContent?key=${canaries.clientKey}`), { contents });
  await send(google("generateContent"), { contents }, { "x-goog-api-key": `${canaries.clientKey}x` });
  await send("/good/v1/messages", asked);
  provider.next(() => Response.json({ error: { message: `bad key ${canaries.providerKey}` } }, { status: 401 }));
  await send("/good/v1/messages", { model: "m", max_tokens: 9, messages: [] });
  provider.next(() => Response.json({ error: { message: `bad key ${canaries.providerKey}` } }, { status: 400 }));
  await send("/good/v1/messages", { model: "m", max_tokens: 9, messages: [] });
  await send("/dead/v1/messages", asked);
  await send("/v1/chat/completions", {}, { "x-api-key": `${canaries.clientKey}x` });
  expect(scenarios).toBeGreaterThan(40);

  const measured = proxy.rows().flatMap(({ portions, request_id }) => (portions ? [request_id] : []));
  expect(measured.length).toBeGreaterThan(5);
  const pages: string[] = [];
  let served = 0;
  const prompt = proxy.rows().find((row) => row.prompt !== null)!.prompt!;
  for (const path of [
    ...readablePaths({ request: measured[0]!, prompt }),
    ...["/api/admin/requests?limit=200", "/admin/requests?limit=100", "/admin/requests/export?format=jsonl"],
    ...["/api/admin/statistics?by=client_name", "/api/admin/export?format=csv"],
    ...measured.slice(0, 10).flatMap((id) => [`/admin/requests/${id}`, `/api/admin/requests/${id}`]),
  ]) {
    // One that goes on for ever is read for a moment.
    const answer = await fetch(proxy.url + path, { headers, redirect: "manual" });
    served += Number(answer.ok);
    const reader = answer.body?.getReader();
    const end = setTimeout(() => void reader?.cancel(), 300);
    for (let read = await reader?.read(); read && !read.done; read = await reader!.read())
      pages.push(new TextDecoder().decode(read.value));
    clearTimeout(end);
    pages.push("\n");
  }
  proxy.rows();
  expect(served).toBeGreaterThan(50);

  const files = readdirSync(proxy.home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "config.json")
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString("latin1"));
  expect(files.length).toBeGreaterThan(0);
  const tokens = proxy.demo.journal.flatMap((seen) => seen.headers.authorization?.split(" ")[1] ?? []);
  const secrets = [
    ...[...Object.values(canaries), ...Object.values(words)],
    ...proxy.demo.accounts.map(({ githubToken }) => githubToken),
    ...new Set(tokens),
  ];
  const places = {
    lines: proxy.lines.join(""),
    errors: errors.join("\n"),
    pages: pages.join(""),
    files: files.join("\n"),
  };
  const found = Object.entries(places).flatMap(([place, text]) =>
    secrets
      .filter((secret) => spellings(secret).some((each) => text.includes(each)))
      .map((secret) => `${place}: ${secret}`),
  );
  expect(found).toEqual([]);
}, 30_000);

test("an exception that has a request and its headers attached is redacted", () => {
  const { logger, lines } = keptLog();
  const request = new Request("http://127.0.0.1/v1?key=zq-canary", {
    method: "POST",
    body: "zq-canary",
    headers: { authorization: "Bearer zq-canary-0123456789" },
  });
  logger.error(
    "It failed.",
    Object.assign(new Error("no"), { request, headers: request.headers, config: { key: "zq-canary" } }),
  );
  logger.error("It failed.", request);
  logger.error("It failed.", { headers: Object.fromEntries(request.headers) });
  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toContain("zq-canary");
});

test("10,000 errors at once are told by their number, and lines for the other levels go on", () => {
  using clock = spyOn(performance, "now").mockReturnValue(5_000);
  const { logger, lines } = keptLog();
  for (let turn = 0; turn < 10_000; turn++) logger.error(`It failed: ${turn}`);
  expect(lines.length).toBeLessThanOrEqual(1001);
  logger.info("All is well.");
  expect(lines.at(-1)).toContain("All is well.");
  clock.mockReturnValue(6_000);
  logger.error("Once more.");
  expect(lines.at(-2)).toMatch(/\d+ more warnings and errors were left out/);
  expect(lines.at(-1)).toContain("Once more.");
});

test("a sink that is full or closed does not stop a request", async () => {
  await using proxy = await startProxy({ config: { logLevel: "debug" } });
  const write = process.stderr.write;
  process.stderr.write = () => {
    throw Object.assign(new Error("no space"), { code: "ENOSPC" });
  };
  try {
    const logger = createLogger(() => "debug");
    expect(() => logger.error("It failed.")).not.toThrow();
  } finally {
    process.stderr.write = write;
  }
  expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(200);
});

test.if(process.platform === "linux")(
  "lines that go to a full disk, and a ready line that did not, cost no request",
  async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0"], {
      within: ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"],
    });
    const { url } = await command.ready();
    for (const order of ["", "[demo: 500] ", "[demo: cut 3] "])
      for (let turn = 0; turn < 5; turn++) {
        const messages = [{ role: "user", content: `${order}Hello` }];
        const body = { model: exampleModels.flash, stream: true, messages };
        const response = await postJson(`${url}/v1/chat/completions`, body);
        expect(await response.text()).toContain(order ? '"error"' : "[DONE]");
      }
    expect((await fetch(`${url}/health`)).status).toBe(200);
  },
);

test("model, path and client of control characters are one plain line each, in the log and in the history", async () => {
  await using proxy = await startProxy({ config: { logLevel: "debug" } });
  const odd = [
    "a\r\n2026-01-01T00:00:00Z error forged",
    "\u001b[31mred",
    "\u001b]52;c;Y2FuYXJ5\u0007",
    "x\0y",
    "\u2028\u202egnp",
  ];
  for (const model of odd) {
    const before = proxy.lines.length;
    await (await proxy.post("/v1/chat/completions", { model, messages: [] })).arrayBuffer();
    await (await proxy.post(`/v1/${encodeURIComponent(model)}`, {})).arrayBuffer();
    expect(proxy.lines.length - before).toBeWithin(1, 5);
  }
  const body = '{"model":"gpt-5-mini","messages":[{"role":"user","content":"Hello"}]}';
  await sendRaw(
    proxy.url,
    `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nUser-Agent: title/1\u009b31m\u202e x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    { quiet: 200 },
  );
  for (const line of proxy.lines) {
    expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z (?:error|warn {1}|info {1}|debug) [^\n]*\n$/);
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e]/);
  }
  expect(proxy.rows()).toHaveLength(odd.length + 1);
  const listed = await (await fetch(`${proxy.url}/api/admin/requests`)).text();
  expect(listed).not.toContain("\u001b");
});
