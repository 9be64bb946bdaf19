/** Scenario: GitHub's warnings in the model list reach the people whom they are for. */
import { expect, test } from "bun:test";
import { warningNotices } from "../../../src/books/notices/conditions";
import { factsOf } from "../../../src/parts/facts";
import { readModel } from "../../../src/proxy/upstream/models/model";
import { type RunningProxy, startProxy } from "../../support/proxy";

const item = (id: string, more: object) => readModel({ id, capabilities: { type: "chat" }, ...more })!;
const outdated = { code: "client_version_deprecated", message: "Please update your client before 1 January" };

test("a long list and a long message are cut", () => {
  const all = Array.from({ length: 100 }, (_, at) => ({ code: "c", message: `${at}`.padEnd(5000, "x") }));
  const { warnings = [] } = item("m", { warning_messages: all });
  expect([warnings.length <= 8, Math.max(...warnings.map(({ message }) => message.length))]).toEqual([true, 300]);
});

const page = async (proxy: RunningProxy, path: string) => (await fetch(proxy.url + path)).text();
const start = async (warning?: typeof outdated) => {
  const proxy = await startProxy({ demo: { generation: "C" }, accounts: ["work-demo"] });
  proxy.demo.warning = warning;
  await page(proxy, "/v1/models");
  return proxy;
};

test("where it is shown on the pages, as a fact that needs somebody, and as one notice", async () => {
  await using proxy = await start(outdated);
  const words = "Please update your client before 1 January";
  for (const path of ["/admin/models", "/admin/accounts", "/admin/health", "/admin"])
    expect([path, (await page(proxy, path)).includes(words)]).toEqual([path, true]);
  for (let times = 0; times < 2; times++) await proxy.app.notices.check();
  expect(proxy.lines.filter((line) => line.includes("GitHub warns. GitHub is about to shut out"))).toHaveLength(1);
});

test("where it is shown, what a vendor keeps is told, as no fault", async () => {
  await using proxy = await start();
  await proxy.app.notices.check();
  const words = "GitHub says of claude-fable-5, claude-fable-5.1, claude-fable-5.2:";
  expect(proxy.lines.filter((line) => line.includes(`Prompts may be kept. ${words}`))).toHaveLength(1);
  expect(await page(proxy, "/admin/models")).toContain("Anthropic retains prompts and outputs of this model");
  expect(factsOf(proxy.app).find(({ name }) => name === "Warnings")).toMatchObject({ state: "idle" });
});

test("nothing is shown where GitHub tells nothing", async () => {
  await using proxy = await startProxy();
  await page(proxy, "/v1/models");
  expect(await page(proxy, "/admin/health")).not.toContain("GitHub warns");
});

test("a warning is told once, and another one of the same code too", () => {
  const idOf = (message: string) => warningNotices([{ code: "outdated", message, models: [] }])[0]!.id;
  expect(new Set(["Update.", "Update.", "Update now."].map(idOf)).size).toBe(2);
});
