/**
 * Run as a process with a low limit of open files: a proxy that has none left while clients ask, and then has some again.
 * Prints what the clients and the log got, as JSON.
 */
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { startProxy } from "./proxy";

await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"], fronted: true });
proxy.front!.keepsConnections = false;

async function ask() {
  const response = await proxy.post("/v1/chat/completions", {
    model: "claude-sonnet-4.6",
    messages: [{ role: "user", content: "Hello" }],
  });
  const { error } = (await response.json()) as { error?: object };
  return { status: response.status, retryAfter: response.headers.get("retry-after"), ...error };
}

// What is loaded at the first use needs files too.
for (let turn = 0; turn < 2; turn++) await ask();
const held: number[] = [];
try {
  for (;;) held.push(openSync(devNull, "r"));
} catch {}
const starved: object[] = [];
for (let turn = 0; turn < 6; turn++) starved.push(await ask());
const states = proxy.app.accounts.map(({ state }) => state.name);
for (const file of held) closeSync(file);
const after = await ask();
console.log(JSON.stringify({ starved, states, after }));
proxy.drain();
