/**
 * Run as a process with a low limit of open files: what is done in threads, while no file is left and then again. Prints what came
 * of it, as JSON.
 */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { matchInThread } from "../../src/proxy/server-tools/match-threads";
import type { ToolQuery } from "../../src/proxy/server-tools/tool-match";
import { openTokenizer } from "../../src/proxy/tokens/tokenizer";
import { startProxy } from "./proxy";

await using proxy = await startProxy();
const tokenizer = openTokenizer();
const query: ToolQuery = { query: "look", how: "words", tools: [{ name: "look", description: "Looks.", inputs: [] }] };

const tried = async (): Promise<Record<string, string>> => {
  const outcome = (made: Promise<unknown>) =>
    made.then(
      () => "done",
      (thrown) => String((thrown as { code?: unknown }).code ?? thrown),
    );
  return {
    history: await outcome(proxy.app.history.totals({})),
    tokens: await outcome(tokenizer.count(["one"])),
    search: await outcome(matchInThread(query, new AbortController().signal)),
    // It looks into the history.
    notices: await outcome(proxy.app.notices.check()),
  };
};

const held: number[] = [];
try {
  for (;;) held.push(openSync(devNull, "r"));
} catch {}
const starved = await tried();
for (const file of held) closeSync(file);
const after = await tried();
tokenizer.close();
console.log(JSON.stringify({ starved, after }));
proxy.drain();
