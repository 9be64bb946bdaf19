/**
 * Pairs: each page and each answer of the admin API as a whole, of a world in which everything is known. A file of
 * `fixtures/pages/` has under each line with `>>` what this person gets there; `UPDATE=1` writes what they get now.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pageEndpoints } from "../../src/admin/pages/plugin";
import { pageText, partOf } from "../support/page-text";
import { evil, type World, worlds } from "../support/page-worlds";
import { fixtures } from "../support/streams";

const zone = process.env.TZ;
afterAll(() => {
  process.env.TZ = zone ?? "UTC";
});

const folder = join(fixtures, "pages");
const opened = new Map<string, Promise<World>>();
const worldNamed = (name: string) => {
  if (!opened.has(name)) opened.set(name, worlds[name as keyof typeof worlds]());
  return opened.get(name)!;
};
// Under load it takes longer than a test may.
beforeAll(async () => {
  for (const name of Object.keys(worlds)) process.env.TZ = (await worldNamed(name)).zone;
}, 60_000);
afterAll(() => Promise.all([...opened.values()].map(async (world) => (await world)[Symbol.asyncDispose]())));

for (const file of readdirSync(folder).sort()) {
  const blocks = readFileSync(join(folder, file), "utf8")
    .trimStart()
    .split(/^(?=>> )/m);
  test.each(blocks.map((block) => [block.split("\n")[0]!.slice(3), block] as const))(
    "each page and each answer of the admin API is as it was: %s",
    async (asked, block) => {
      const answer = `>> ${asked}\n${await answerTo(asked)}\n`;
      if (process.env.UPDATE) blocks[blocks.indexOf(block)] = answer;
      else expect(answer.trimEnd().split("\n")).toEqual(block.trimEnd().split("\n"));
    },
  );
  if (process.env.UPDATE)
    afterAll(() => writeFileSync(join(folder, file), `${blocks.map((block) => block.trimEnd()).join("\n\n")}\n`));
}

/** @param asked The world, the person, a method and a path, what a form or JSON sends, and behind `~` where the part begins that is shown. */
async function answerTo(asked: string): Promise<string> {
  const [call, part] = asked.split(" ~ ") as [string, string?];
  const [, name, person, method, path, sent] = /^(\S+) (\S+) (\S+) (\S+)(?: (.*))?$/.exec(call) as unknown as string[];
  const world = await worldNamed(name!);
  process.env.TZ = world.zone;
  const headers = world.headers[person!]!;
  const answer = await fetch(world.url + world.given(path!), {
    method,
    redirect: "manual",
    ...(method === "POST" ? await bodyOf(sent, world, headers) : { headers }),
  });
  const text = await answer.text();
  const type = answer.headers.get("content-type");
  if (type?.startsWith("text/html") || answer.status === 303)
    expect(Object.fromEntries(Object.keys(pageHeaders).map((each) => [each, answer.headers.get(each)]))).toEqual(
      pageHeaders,
    );
  const location = answer.headers.get("location");
  const cookie = answer.headers.get("set-cookie")?.replace(/_\d+=[^;]+/, "");
  const head = `${answer.status} ${type ?? ""}${location === null ? "" : ` → ${location}`}${cookie ? ` (${cookie})` : ""}`;
  const said = type?.startsWith("text/html")
    ? pageText(text, path === "/admin")
    : type?.startsWith("application/json")
      ? asLines(JSON.parse(text))
      : text;
  const shown = part === undefined ? said : partOf(said, part);
  return `${world.steady(head)}\n${world.steady(shown).trimEnd()}\n`;
}

/** A form with the token of the person's pages, or JSON. */
async function bodyOf(sent: string | undefined, { url }: World, headers: Record<string, string>) {
  if (sent?.startsWith("{")) return { body: sent, headers: { ...headers, "content-type": "application/json" } };
  const body = new URLSearchParams(sent);
  const token = formTokenIn(await (await fetch(`${url}/admin/keys`, { headers })).text());
  if (!body.has("form_token") && token !== undefined) body.set("form_token", token);
  return { body, headers };
}

const formTokenIn = (html: string) => /name="form_token" value="([^"]+)"/.exec(html)?.[1];

/** A page allows nothing but its own, and is not kept. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
  "access-control-allow-origin": null,
};

/** JSON in which what is short stands on one line. */
function asLines(value: unknown, indent = ""): string {
  const whole = JSON.stringify(value);
  if (whole.length < 140 || typeof value !== "object" || value === null) return whole;
  const inner = `${indent} `;
  const parts = Array.isArray(value)
    ? value.map((each) => asLines(each, inner))
    : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${asLines(each, inner)}`);
  const [start, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  return `${start}\n${parts.map((part) => `${inner}${part}`).join(",\n")}\n${indent}${end}`;
}

test.each([
  ...pageEndpoints().flatMap(({ title, path, teamOnly }) => (title && !teamOnly ? path : [])),
  ...["/admin/requests/evil", "/admin/requests/odd"],
  `/admin/requests?client_model=${encodeURIComponent(evil)}&path=${encodeURIComponent(evil)}`,
  `/admin/requests?period=${encodeURIComponent(evil)}&follow=${encodeURIComponent(evil)}`,
  ...["constructor", "__proto__"].map((period) => `/admin/requests?period=${period}`),
  `/admin?measure=${encodeURIComponent(evil)}`,
  `/admin/config?saved=${encodeURIComponent(evil)}&change=${encodeURIComponent(evil)}`,
  ...[`/admin/requests/${encodeURIComponent(evil)}`, `/admin/${encodeURIComponent(evil)}`],
])("what others chose is text, never markup, and cannot turn the direction of writing: %s", async (path) => {
  const answer = await answerTo(`odd owner GET ${path}`);
  expect(answer).toMatch(/^(?:200|404) text\/html/);
  expect(answer).not.toContain("\u202e");
});

test("nothing that anybody asks for here is a fault of ours", async () => {
  for (const world of opened.values()) expect((await world).faults()).toEqual([]);
});
