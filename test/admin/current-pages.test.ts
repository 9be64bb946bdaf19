/** Scenario: what single pages say of what is not there yet, and how it is marked up. */
import { expect, test } from "bun:test";
import type { Entry } from "../../src/books/history/history";
import { entry } from "../support/history-rows";
import { startProxy } from "../support/proxy";

const textOf = (page: string) =>
  page
    .replace(/<(style|script)[\s\S]*?<\/\1>/g, "")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ");

/** A proxy with these rows, a second old, and its pages. */
async function having(...rows: Partial<Entry>[]) {
  const proxy = await startProxy();
  const add = (...more: Partial<Entry>[]) => {
    for (const row of more) proxy.app.history.add(entry({ started_at_ms: Date.now() - 1_000, ...row }));
    proxy.history.flush();
  };
  const page = async (path = "") => (await fetch(`${proxy.url}/admin${path}`)).text();
  add(...rows);
  return { ...proxy, add, page, words: async (path?: string) => textOf(await page(path)) };
}

test("the cache page does not speak of later turns before there was one", async () => {
  const turn = (session: number, cached_tokens = 0) => ({
    session: `session-${session}`,
    input_tokens: 9,
    cached_tokens,
  });
  await using own = await having(...[0, 1, 2, 3, 4].map((session) => turn(session)));
  const misses = async () => /Cache misses (.*?) By model/.exec(await own.words("/cache"))?.[1];
  expect(await misses()).toBe("No conversation has had a second turn yet.");
  own.add(turn(0));
  expect(await misses()).toStartWith("None is known, and nothing was read from the cache");
  own.add(turn(0, 5));
  expect(await misses()).toStartWith("None. Every later turn");
});

test("the notes of the Connect page have code where the notes have it, and no backticks", async () => {
  await using own = await having();
  const page = await own.page("/connect");
  // PowerShell continues a line with one.
  const notes = textOf(page.replace(/<pre[\s\S]*?<\/pre>/g, ""));
  expect(notes.match(/.{20}`.{20}/g)).toBeNull();
  expect(page).toContain("<code>allowedHosts</code>");
});

test("the sign-in page does not say that this machine is another one", async () => {
  await using proxy = await startProxy({ env: { ADMIN_TOKEN: "t-admin-0123456789" }, adminAuth: "always" });
  const page = textOf(await (await fetch(`${proxy.url}/admin`)).text());
  expect(page).toContain("--admin-auth=always");
  expect(page).not.toContain("You are connecting from another machine");
});
