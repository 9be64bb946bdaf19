/** Scenario: the page Try: every dialect answers, and nothing but the row is kept. */
import { afterAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { clientDialects } from "../../src/dialects/hub/conversation";
import { samples } from "../../src/dialects/samples";
import { formTokenIn } from "../support/form-fields";
import { startProxy } from "../support/proxy";

const token = "t-admin-0123456789";
const proxy = await startProxy({ demo: { pace: 1 } });
const keyed = await startProxy({ env: { ADMIN_TOKEN: token }, config: { auth: { apiKeys: ["key-of-a-client"] } } });
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await keyed[Symbol.asyncDispose]();
});

const secretWords = "the purple hippopotamus";
const usual = { dialect: "messages", model: "claude-sonnet-4.6", prompt: `Who is ${secretWords}?`, max_tokens: "500" };

async function formToken(of = proxy): Promise<string> {
  const html = await (await fetch(`${of.url}/admin/try`)).text();
  return formTokenIn(html);
}

async function send(more: Record<string, string>, { of = proxy, path = "/admin/try/send" } = {}) {
  const form = new URLSearchParams({ form_token: await formToken(of), ...usual, ...more });
  return fetch(of.url + path, { method: "POST", body: form });
}

/** The command that a page shows. */
const commandIn = (page: string) =>
  /<pre id="curl-text">([^<]*)</
    .exec(page)![1]!
    .replace(/&(#x27|quot|amp|lt|gt);/g, (_, name: string) => entities[name]!);
const entities: Record<string, string> = { "#x27": "'", quot: '"', amp: "&", lt: "<", gt: ">" };

/** The texts of a stream, as the page finds them. */
function textsOf(stream: string, dialect: (typeof clientDialects)[number]): string {
  const at = (value: unknown, path: string) =>
    path
      .split(".")
      .reduce<unknown[]>(
        (found, name) =>
          found.flatMap((each) =>
            name === "*" ? (Array.isArray(each) ? each : []) : [(each as Record<string, unknown> | undefined)?.[name]],
          ),
        [value],
      );
  return stream
    .split("\n")
    .flatMap((line) => /^data: (\{.*)/.exec(line)?.[1] ?? [])
    .map((data) => JSON.parse(data) as unknown)
    .flatMap((event) =>
      samples[dialect].texts
        .filter(({ kind, when }) => kind === "text" && (!when || at(event, when[0]).includes(when[1])))
        .flatMap(({ path }) => at(event, path).filter((value) => typeof value === "string")),
    )
    .join("");
}

test.each([...clientDialects])(
  "a prompt in %s is answered in its stream, and the command says the same",
  async (dialect) => {
    const response = await send({ dialect, system: "Be brief." });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/event-stream"),
    ]);
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(textsOf(await response.text(), dialect)).toContain("DEMO");
    const [row] = proxy.rows();
    expect(row).toMatchObject({
      client_dialect: dialect,
      client_name: "dragoman-try",
      initiator: "user",
      request_id: response.headers.get("x-request-id")!,
    });
    const page = await (await send({ dialect, system: "Be 'brief'." }, { path: "/admin/try" })).text();
    const shell = Bun.spawn(["sh", "-c", commandIn(page)], { stdout: "pipe", stderr: "ignore" });
    expect(textsOf(await shell.stdout.text(), dialect)).toContain("DEMO");
    // A provider would store what is not told otherwise.
    expect(/"store": ?false/.test(commandIn(page))).toBe(dialect === "responses");
    const [other] = proxy.rows();
    expect(other).toMatchObject({ client_dialect: dialect, path: row!.path, input_tokens: expect.any(Number) });
  },
);

test("a prompt leaves nothing in the data folder and the log but its row", async () => {
  await (await send({})).text();
  proxy.rows();
  expect(proxy.lines.join("")).not.toContain("hippopotamus");
  for (const file of readdirSync(proxy.home, { recursive: true, withFileTypes: true }).filter((each) => each.isFile()))
    expect(readFileSync(join(file.parentPath, file.name)).includes("hippopotamus")).toBe(false);
});

test("a prompt that fails gives the error of its dialect", async () => {
  await using limitedHere = await startProxy();
  const unknown = await send({ model: "none-of-them", dialect: "gemini" });
  expect([unknown.status, await unknown.json()]).toEqual([
    404,
    { error: expect.objectContaining({ code: 404, status: "NOT_FOUND" }) },
  ]);
  const limited = await send({ prompt: "[demo: 429]" }, { of: limitedHere });
  expect([limited.status, await limited.json()]).toEqual([429, expect.objectContaining({ type: "error" })]);
  const [row] = limitedHere.rows();
  expect(row).toMatchObject({ http_status: 429, client_name: "dragoman-try" });
});

test("a prompt is refused where it is none, and by forms that are not ours", async () => {
  const html = await (await fetch(`${proxy.url}/admin/try`)).text();
  const [min, max] = /name="max_tokens"[^>]*? min="(\d+)" max="(\d+)"/.exec(html)!.slice(1).map(Number);
  const amounts = [min! - 1, min!, max!, max! + 1].map(
    async (max_tokens) => (await send({ max_tokens: `${max_tokens}` })).status,
  );
  expect(await Promise.all(amounts)).toEqual([400, 200, 200, 400]);
  const faults: Record<string, string>[] = [{ model: " " }, { prompt: "" }, { dialect: "xml" }];
  for (const wrong of faults) expect([wrong, (await send(wrong)).status]).toEqual([wrong, 400]);
  expect((await send({ form_token: "x" })).status).toBe(403);
  const foreign = await fetch(`${proxy.url}/admin/try/send`, {
    method: "POST",
    body: new URLSearchParams(usual),
    headers: { origin: "https://evil.test" },
  });
  expect(foreign.status).toBe(403);
});

test("a prompt needs no client key of the owner; the command has a place for one", async () => {
  expect((await send({}, { of: keyed })).status).toBe(200);
  expect(await (await send({}, { of: keyed, path: "/admin/try" })).text()).toContain("x-api-key: YOUR_CLIENT_KEY");
  const stranger = await fetch(`${keyed.url}/admin/try/send`, {
    method: "POST",
    body: new URLSearchParams(usual),
    headers: { "x-forwarded-for": "10.0.0.9" },
  });
  expect(stranger.status).toBe(401);
});
