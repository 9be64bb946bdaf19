/**
 * Rows: what people read and try names models that GitHub Copilot lists: a retirement is one row of `known-models.ts`.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { demoAccounts } from "../../../src/demo/accounts";
import { visibleModels } from "../../../src/demo/models";
import { DemoState } from "../../../src/demo/state";
import { documents, textOfDocument } from "../../../src/deploy/documents/documents";
import { currentModels, exampleModels } from "../../../src/proxy/upstream/models/known-models";

const root = join(import.meta.dir, "../../..");

/** A whole name: one with a `*` stands for several. */
const modelName =
  /(?<![\w.-])(?:gpt-\d|claude-(?:fable|haiku|mythos|opus|sonnet)-\d|gemini-\d|kimi-k\d|grok-\d|mai-code-\d|raptor-|microsoft-decision-)[\w.-]*\w(?![\w*-])/g;

/** `claude-sonnet-5-5` is how Anthropic writes `claude-sonnet-5.5`. */
const idOf = (name: string): string => name.replace(/^(claude-.*-\d)-(\d)$/, "$1.$2");

/** Names that clients have by themselves, where the text says so. */
const others: Record<string, string[]> = {
  // What Gemini CLI asks for, whatever is listed.
  "src/routes/README.md": ["gemini-2.5-flash"],
  // The name of the instructions that Codex brings along.
  "src/clients/README.md": ["gpt-5.5", "gpt-5.5.md"],
};

test("documents, help, pages and examples name no model that is not in the table", () => {
  const sources = [...new Bun.Glob("src/{cli,admin,config,deploy,notices}/**/*.{ts,tsx,mjs}").scanSync({ cwd: root })];
  const texts = [
    ...documents.map((path) => [path, textOfDocument(path)] as const),
    ...sources.map((path) => [path, readFileSync(join(root, path), "utf8")] as const),
  ];
  const named = texts.flatMap(([path, text]) => (text.match(modelName) ?? []).map((name) => [path, name] as const));
  // Some do: the pattern finds them.
  expect(named.length).toBeGreaterThan(30);
  const left = named.filter(([path, name]) => !currentModels.has(idOf(name)) && !others[path]?.includes(name));
  expect(left).toEqual([]);
});

test("examples are in the table", () => {
  expect(Object.values(exampleModels).filter((id) => !currentModels.has(id))).toEqual([]);
});

test("the demo lists these models, and no other one for conversations", () => {
  const state = new DemoState({ generation: "C" });
  const [account] = demoAccounts();
  const all = visibleModels(state, { ...account!, plan: "enterprise" });
  const ids = all.filter(({ kind }) => kind === "chat").map(({ id }) => id);
  expect(ids.toSorted()).toEqual([...currentModels].toSorted());
});
