/** Rows: the usage as one line, for status bars. */
import { expect, test } from "bun:test";
import type { UsageItem } from "../../src/routes/usage";
import { usageLine } from "../../src/routes/usage-line";
import { startProxy } from "../support/proxy";

const usage = (given: Partial<UsageItem>): UsageItem =>
  ({
    id: "octo",
    plan: "individual",
    unit: "premium",
    entitlement: 300,
    remaining: 217.34,
    unlimited: false,
    state: "ready",
    reset_at: "2026-12-01T00:00:00.000Z",
    ...given,
  }) as UsageItem;

const all = "{account}|{left}|{remaining}|{entitlement}|{used}|{percent}|{unit}|{state}|{reset}|{other}";
const now = Date.parse("2026-11-22T12:00:00Z");

test.each<[Partial<UsageItem>, string]>([
  [{}, "octo|217 premium left|217|300|82.7|72%|premium|ready|1 December, 00:00 UTC|{other}"],
  [{ unlimited: true }, "octo|unlimited|∞|∞|?|100%|premium|ready|1 December, 00:00 UTC|{other}"],
  [{ remaining: null, reset_at: null, unit: "credits" }, "octo|? cr left|?|300|?|?|credits|ready|?|{other}"],
  [
    { remaining: -3, state: "exhausted" },
    "octo|-3 premium left|-3|300|303|0%|premium|exhausted|1 December, 00:00 UTC|{other}",
  ],
])("the usage line fills each known name of its form and leaves the others, for %j", (given, expected) => {
  expect(usageLine([usage(given)], all, now)).toBe(expected);
});

test("GET /usage/line: one line of text, in the form that was asked for", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "plus-demo"] });
  const response = await fetch(`${proxy.url}/usage/line`);
  expect(response.headers.get("content-type")).toStartWith("text/plain");
  expect(await response.text()).toBe("octo-demo: 217 premium left · plus-demo: 1,204 premium left\n");
  const formatted = await fetch(`${proxy.url}/usage/line?format=${encodeURIComponent("{percent}\n\u001b[31m")}`);
  expect(await formatted.text()).toBe("72%\\u000a\\u001b[31m · 80%\\u000a\\u001b[31m\n");
  expect((await fetch(`${proxy.url}/usage/line?format=${"x".repeat(501)}`)).status).toBe(400);
});
