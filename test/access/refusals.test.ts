/** Pairs: what each endpoint and each page answers to those who are not its owner, as `fixtures/access/refusals.txt` has it. */
import { afterAll } from "bun:test";
import { worlds } from "../support/page-worlds";
import { testWritten } from "../support/written";
import { paths } from "./paths";

const zone = process.env.TZ;
const world = await worlds.full();
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  process.env.TZ = zone ?? "UTC";
});

const { owner, away, foreign, anna, ...others } = world.headers;
const json = { "content-type": "application/json" };

/** By what they send. A page's form lacks its token, and JSON says nothing. */
const callers: Record<string, Record<string, string>> = {
  "at another machine": { ...away, ...json },
  "by a link or a form of another site": { ...foreign, ...json },
  "as a member, with the cookie of the pages": { ...anna, "content-type": "application/x-www-form-urlencoded" },
  "as a member, with a key": { ...others["anna-key"], ...json },
  "as the owner, with a body of another type": { ...owner, "content-type": "text/plain" },
};
const asked = Object.values(paths).flat();

testWritten(
  "access/refusals.txt",
  Object.entries(callers).map(([title, headers]) => [title, () => answersTo(headers)]),
);

async function answersTo(headers: Record<string, string>): Promise<string> {
  const lines: string[] = [];
  for (const { method, path } of asked) {
    const answer = await fetch(world.url + path, {
      ...{ method, headers, redirect: "manual" },
      ...(method === "POST" && { body: "{}" }),
    });
    const isStream = /event-stream/.test(answer.headers.get("content-type") ?? "");
    if (isStream) await answer.body!.cancel();
    const [, type] = isStream ? [] : (/"(?:code|type)": ?"(\w+)"(?=[^{]*$)/.exec(await answer.text()) ?? []);
    lines.push(`${method} ${path} ${[answer.status, answer.ok ? "" : type].filter(Boolean).join(" ")}`);
  }
  return lines.join("\n");
}
