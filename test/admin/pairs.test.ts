/** Pairs: what the pages say of numbers, failures and quotas, from `fixtures/pairs/admin/`. */
import { afterEach } from "bun:test";
import type { AccountItem } from "../../src/admin/api/accounts";
import { missSentence } from "../../src/admin/api/cache-savings";
import { forecastOf } from "../../src/admin/pages/forecast";
import { whatToDo } from "../../src/admin/pages/request/what-to-do";
import { niceTop } from "../../src/admin/ui/chart";
import * as format from "../../src/lib/format";
import type { App } from "../../src/parts/app";
import { accessFact } from "../../src/parts/facts";
import { testPairs } from "../support/pairs";

const zone = process.env.TZ;
afterEach(() => {
  process.env.TZ = zone ?? "UTC";
});

const formats = { ...format } as unknown as Record<string, (...given: unknown[]) => string>;
const known = { entitlement: 300, unlimited: false, failed: false };

testPairs("admin", {
  /** The error and the status of a request that failed. */
  "what-to-do": (error_type: string, http_status: number) => whatToDo({ error_type, http_status }),
  /** Of a row of the history. */
  "cache-miss": (row: Parameters<typeof missSentence>[0]) => missSentence(row) ?? null,
  /** How a server was started, and how many client keys it has. */
  access: (app: object, keys: number) => accessFact({ ...app, clientKeys: Array(keys) } as unknown as App),
  /** What is known of an account beyond the plain, its reset, and the time: the same in every zone. */
  forecast(account: { runtime: object }, reset: string | null, now: string) {
    const told = ["America/Los_Angeles", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "UTC"].map((each) => {
      process.env.TZ = each;
      const item = { ...account, runtime: { ...known, ...account.runtime }, reset_at_ms: reset && Date.parse(reset) };
      const forecast = forecastOf(item as AccountItem, Date.parse(now));
      return { ...forecast, ...("at" in forecast && { at: new Date(forecast.at) }) };
    });
    return new Set(told.map((each) => JSON.stringify(each))).size === 1 ? told[0] : told;
  },
  /** Each in a format, in Nepal; a text, of ten characters at most. */
  format(name: string, all: unknown[]) {
    process.env.TZ = "Asia/Kathmandu";
    return all.map((each) => formats[name]!(...[each].flat()));
  },
  shorten: (text: string) => format.shorten(text, 10),
  /** Where the axis of a chart ends. */
  "nice-top": (most: number) => niceTop(most),
});
