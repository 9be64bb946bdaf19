/**
 * Pairs: each page and each answer of the admin API as a whole, of a world in which everything is known. A file of
 * `fixtures/pages/` has under each line with `>>` what this person gets there; `UPDATE=1` writes what they get now.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formTokenIn } from "../support/form-fields";
import { pageText } from "../support/page-text";
import { type World, worlds } from "../support/page-worlds";
import { fixtures } from "../support/streams";

const zone = process.env.TZ;
process.env.TZ = "UTC";
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
beforeAll(() => Promise.all(Object.keys(worlds).map(worldNamed)), 60_000);
afterAll(() => Promise.all([...opened.values()].map(async (world) => (await world)[Symbol.asyncDispose]())));

for (const file of readdirSync(folder).sort()) {
  const blocks = readFileSync(join(folder, file), "utf8")
    .trimStart()
    .split(/^(?=>> )/m);
  test.each(blocks.map((block) => [block.split("\n")[0]!.slice(3), block] as const))(
    `${file.replace(".txt", "")} is as it was: %s`,
    async (asked, block) => {
      const answer = `>> ${asked}\n${await answerTo(asked)}\n`;
      if (process.env.UPDATE) blocks[blocks.indexOf(block)] = answer;
      else expect(answer.trimEnd().split("\n")).toEqual(block.trimEnd().split("\n"));
    },
  );
  if (process.env.UPDATE)
    afterAll(() => writeFileSync(join(folder, file), `${blocks.map((block) => block.trimEnd()).join("\n\n")}\n`));
}

/** @param asked The world, the person, a method and a path, what a form sends, and behind `~` where the part begins that is shown. */
async function answerTo(asked: string): Promise<string> {
  const [call, part] = asked.split(" ~ ") as [string, string?];
  const [name, person, method, path, sent] = call.split(" ") as [string, string, string, string, string?];
  const world = await worldNamed(name);
  const headers = world.headers[person]!;
  const body = method === "POST" ? new URLSearchParams(sent) : undefined;
  if (body) {
    const form = await (await fetch(`${world.url}/admin/keys`, { headers })).text();
    body.set("form_token", formTokenIn(form));
  }
  const answer = await fetch(world.url + path, { method, headers, body, redirect: "manual" });
  const text = await answer.text();
  const type = answer.headers.get("content-type");
  const location = answer.headers.get("location");
  const head = `${answer.status} ${type ?? ""}${location === null ? "" : ` → ${location}`}`;
  const said = type?.startsWith("text/html")
    ? pageText(text, path === "/admin")
    : type?.startsWith("application/json")
      ? asLines(JSON.parse(text))
      : text;
  const shown = part === undefined ? said : partOf(said, part);
  return `${world.steady(head)}\n${world.steady(shown).trimEnd()}\n`;
}

/** What stands from this line on up to the next heading that is no smaller. */
function partOf(text: string, begin: string): string {
  const lines = text.split("\n");
  const from = lines.findIndex((line) => line.includes(begin));
  if (from < 0) throw new Error(`No line has ${begin}.`);
  const level = /^#*/.exec(lines[from]!)![0].length || 9;
  const length = lines.slice(from + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(" ") <= level);
  return lines.slice(from, length < 0 ? undefined : from + 1 + length).join("\n");
}

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
