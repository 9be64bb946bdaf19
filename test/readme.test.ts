import { expect, test } from "bun:test";
import { version } from "../package.json";
import { passages, readmePath, refresh } from "./support/readme";

const text = await Bun.file(readmePath).text();

test("the generated passages are what the code says; `bun run docs` rewrites them", () => {
  for (const name of Object.keys(passages)) expect(text).toContain(`<!-- ${name} -->`);
  expect(refresh(text)).toBe(text);
});

test("the commands it names exist, and the Bun it names is the one we are run by", async () => {
  const { scripts, engines } = (await Bun.file(new URL("../package.json", import.meta.url)).json()) as {
    scripts: Record<string, string>;
    engines: { bun: string };
  };
  for (const [, script] of text.matchAll(/bun run (\w+)/g)) expect(Object.keys(scripts)).toContain(script!);
  for (const [, named] of text.matchAll(/bun@(\d+\.\d+\.\d+)/g)) expect(engines.bun).toBe(`>=${named}`);
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});
