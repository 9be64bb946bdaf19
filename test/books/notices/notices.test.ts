/** Scenario: notices: what the receivers get, and what is still known after a restart; `fixtures/books/notices.txt` has what is worth one. */
import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { chmodSync, mkdirSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { postNotice, showOnDesktop, type Webhook } from "../../../src/books/notices/channels";
import { isFailing, type Notice, watchedMs } from "../../../src/books/notices/conditions";
import { openSentNotices } from "../../../src/books/notices/sent-notices";
import type { Subject } from "../../../src/people/budgets/budgets";
import type { Reservation } from "../../../src/people/budgets/entries";
import { credits } from "../../support/amounts";
import { testBooks } from "../../support/books";
import { mostHeldMs, workOf } from "../../support/held";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";
import { type Received, startReceiver, titlesOf } from "./bench";

testBooks("notices");

const subject: Subject = { account: "octo", key: null, model: "gpt-4.1" };

function spend({ app: { budgets } }: RunningProxy, amount: number, by = subject) {
  const amounts = credits(amount);
  budgets.settle(budgets.reserve(by, amounts) as Reservation, { model: by.model, expected: amounts, real: amounts });
}

test("an upstream fails for minutes, and not for a moment", () => {
  const now = 1e12;
  const recent = { count: 5, failed: 5, firstAt: now - 4 * 60_000 };
  expect(isFailing(recent, now)).toBe(true);
  expect(isFailing({ ...recent, failed: 4 }, now)).toBe(false);
  expect(isFailing({ ...recent, firstAt: now - 60_000 }, now)).toBe(false);
  expect(isFailing({ count: 2, failed: 2, firstAt: now - watchedMs }, now)).toBe(false);
  expect(isFailing({ count: 0, failed: 0, firstAt: null }, now)).toBe(false);
});

test("a notice is not tried for more than an hour, and goes to each channel once", () => {
  const path = join(temporaryFolder(), "notices.json");
  let now = 0;
  const open = () => openSentNotices(path, { now: () => now, warn: (sentence) => expect.unreachable(sentence) });
  const first = open();
  expect(first.claim(["a", "b"])).toEqual([
    { id: "a", isNew: true, delivered: [] },
    { id: "b", isNew: true, delivered: [] },
  ]);
  first.note([
    { id: "a", delivered: ["desktop"], isDone: false },
    { id: "b", delivered: ["desktop", "webhook"], isDone: true },
  ]);
  now = 61_000;
  expect(open().claim(["a", "b"])).toEqual([{ id: "a", isNew: false, delivered: ["desktop"] }]);
  now = 3_601_000;
  expect(open().claim(["a", "b"])).toEqual([]);
});

test("a restart announces nothing a second time", async () => {
  await using receiver = startReceiver();
  const home = temporaryFolder();
  const budgets = [{ name: "Month", unit: "credits", limit: 100, per: "month", then: "warn" }];
  const config = { budgets, notices: { webhookUrl: receiver.url } };
  const run = async (credits: number) => {
    await using proxy = await startProxy({ config, env: { DRAGOMAN_HOME: home } });
    await proxy.app.config.change(config);
    spend(proxy, credits);
    await proxy.app.notices.check();
  };
  await run(100);
  await run(1);
  expect(titlesOf(receiver.received)).toEqual(["Budget Month is used up"]);
});

const notice: Notice = { id: "x", type: "test", severity: "info", title: "A <b> & c", message: "@everyone <!channel>" };

const post = (webhook: Webhook) =>
  postNotice(webhook, notice, { at: Date.parse("2026-11-22T10:00:00Z"), version: "1.2.3", wait: async () => {} });

test("the body of a webhook in dragoman's own form is signed", async () => {
  await using receiver = startReceiver();
  await post({ url: receiver.url, secret: "s3cret", format: "json" });
  const [{ headers, body }] = receiver.received as [Received];
  expect(JSON.parse(body)).toEqual({
    ...notice,
    at: "2026-11-22T10:00:00.000Z",
    source: { name: "dragoman", version: "1.2.3" },
  });
  expect(headers["x-dragoman-signature"]).toBe(`sha256=${createHmac("sha256", "s3cret").update(body).digest("hex")}`);
  expect(headers["content-type"]).toBe("application/json");
});

test.each([
  ["slack", { text: "*A &lt;b&gt; &amp; c*\n@everyone &lt;!channel&gt;" }],
  ["discord", { content: "**A <b> & c**\n@everyone <!channel>", allowed_mentions: { parse: [] } }],
] as const)("the body of a webhook for %s mentions nobody", async (format, expected) => {
  await using receiver = startReceiver();
  await post({ url: receiver.url, format });
  expect(JSON.parse(receiver.received[0]!.body)).toEqual(expected);
  expect(receiver.received[0]!.headers["x-dragoman-signature"]).toBeUndefined();
});

test.each([
  [[500, 429], 3, true],
  [[500, 502, 503], 3, false],
  [[404], 1, false],
])("answers of a webhook, %j: %d calls, success %p", async (statuses, calls, isSent) => {
  await using receiver = startReceiver(...statuses);
  const outcome = await post({ url: receiver.url, format: "json" }).then(
    () => true,
    () => false,
  );
  expect([receiver.received.length, outcome]).toEqual([calls, isSent]);
});

test.each([
  ["linux", "notify-send", ["--app-name=dragoman", "--", "--help", "$(touch x); `id`"]],
  [
    "darwin",
    "osascript",
    [
      ...["-e", "on run argv"],
      ...["-e", "display notification (item 2 of argv) with title (item 1 of argv)"],
      ...["-e", "end run", "--help", "$(touch x); `id`"],
    ],
  ],
] as const)(
  "title and message of a notice on the desktop are arguments, not script",
  async (platform, program, args) => {
    const folder = temporaryFolder();
    const log = join(folder, "log");
    const before = process.env.PATH;
    process.env.PATH = folder;
    const shown = () => showOnDesktop({ ...notice, title: "--help", message: "$(touch x); `id`" }, platform);
    try {
      await expect(shown()).rejects.toThrow(`need \`${program}\`, which is not installed`);
      writeFileSync(join(folder, program), `#!/bin/sh\nprintf '%s\\n' "$@" > "${log}"\n`);
      chmodSync(join(folder, program), 0o755);
      await shown();
    } finally {
      process.env.PATH = before;
    }
    expect((await Bun.file(log).text()).trim().split("\n")).toEqual([...args]);
  },
);

test("a system without notifications says so", async () => {
  await expect(showOnDesktop(notice, "aix")).rejects.toThrow("not supported on aix");
});

test.each([
  ["that is not text", (path: string) => writeFileSync(path, Buffer.from([0x7b, 0xff, 0xfe]))],
  ["that is a folder", (path: string) => mkdirSync(path)],
])("a file of what was sent %s costs no notice", (_, damage) => {
  const path = join(temporaryFolder(), "notices.json");
  damage(path);
  const warnings: string[] = [];
  const sent = openSentNotices(path, { now: Date.now, warn: (sentence) => void warnings.push(sentence) });
  expect(sent.claim(["one"])).toEqual([{ id: "one", isNew: true, delivered: [] }]);
  expect(warnings[0]).toContain("cannot be read");
  expect(sent.claim(["one"])).toEqual([]);
});

test("a thousand notices at once are sent as one, noted by one write, and hold nobody up", async () => {
  await using receiver = startReceiver();
  const budgets = [{ name: "Each", unit: "credits", limit: 1, per: "month", each: "key", then: "warn" }];
  await using proxy = await startProxy({ config: { budgets, notices: { webhookUrl: receiver.url } } });
  for (let at = 0; at < 1000; at++) spend(proxy, 2, { ...subject, key: `key-${at}` });
  let writes = 0;
  const watcher = watch(proxy.home, (_, name) => {
    if (name === "notices.json") writes++;
  });
  await proxy.app.notices.check();
  await until(() => writes >= 2, "both writes are seen");
  watcher.close();
  // One before they are sent, and one after.
  expect(writes).toBe(2);
  expect(titlesOf(receiver.received)).toEqual(["1000 notices about holders of budgets"]);

  const path = join(temporaryFolder(), "notices.json");
  const sent = openSentNotices(path, { now: Date.now, warn: expect.unreachable });
  const deliveries = Array.from({ length: 1000 }, (_, at) => ({ id: `${at}`, delivered: ["webhook"], isDone: true }));
  expect(workOf(() => sent.claim(deliveries.map(({ id }) => id)))).toBeLessThan(mostHeldMs);
  expect(workOf(() => sent.note(deliveries))).toBeLessThan(mostHeldMs);
  expect(openSentNotices(path, { now: Date.now, warn: expect.unreachable }).claim(["7"])).toEqual([]);
});

test("what was sent of hundreds of keys each day is still known after a restart", async () => {
  const path = join(temporaryFolder(), "notices.json");
  const opened = () => openSentNotices(path, { now: Date.now, warn: expect.unreachable });
  const ids = Array.from(
    { length: 500 * 40 },
    (_, at) => `budget key-of-a-colleague-${at} requests/day/everybody 80 ${at * 86_400_000}`,
  );
  const first = opened();
  first.claim(ids);
  first.note(ids.slice(0, 3).map((id) => ({ id, delivered: ["mail"], isDone: true })));
  expect(await opened().claim([...ids.slice(0, 3), "new"])).toMatchObject([{ id: "new" }]);
});
