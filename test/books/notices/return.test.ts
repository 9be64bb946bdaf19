/** Rows: the notices that accounts have failed, and that a limit has ended. */
import { expect, test } from "bun:test";
import { accountNotices, type EndingLimits, returnNotices } from "../../../src/books/notices/conditions";
import type { Account } from "../../../src/people/accounts/account";

const minute = 60_000;
const at = (minutes: number) => Date.parse("2026-11-23T14:00:00Z") + minutes * minute;
const noticed = (...accounts: [member: string | null, state: string][]) => ({
  accounts: accounts.map(([member, name]) => ({ member, state: { name, until: at(60) } }) as unknown as Account),
  thresholds: [],
  nameOf: (id: string) => (id === "gone" ? undefined : id),
});

test("a failed account is told with whose it is; that of a member who was removed meanwhile is not", () => {
  const failed = (member: string | null) =>
    ({ id: "hub", key: "github.com/hub", member, state: { name: "failed", reason: "Ended." } }) as unknown as Account;
  const told = accountNotices({ ...noticed(), accounts: [null, "anna", "gone"].map(failed) }, at(0));
  expect(told.map(({ title, message, about }) => [title, message, about])).toEqual([
    ["Account hub failed", "Ended.", undefined],
    ["Account hub of anna failed", "Ended.", "members"],
  ]);
});

test("a limit of all accounts of a person that lasted for minutes, and has ended, is told once in its ten minutes", () => {
  const limits: EndingLimits = new Map();
  const look = (minutes: number, ...accounts: Parameters<typeof noticed>) =>
    returnNotices(limits, noticed(...accounts), at(minutes)).map(({ title, about }) => [title, about]);
  expect(look(0, [null, "exhausted"], [null, "cooling"], ["anna", "exhausted"], ["gone", "cooling"])).toEqual([]);
  expect(look(20, [null, "exhausted"], [null, "ready"], ["anna", "ready"], ["gone", "ready"])).toEqual([
    ["Ready again", undefined],
    ["Ready again for anna", "members"],
  ]);
  expect(look(25, [null, "ready"], ["anna", "ready"])).toHaveLength(2);
  expect(look(31, [null, "ready"], ["anna", "ready"])).toEqual([]);
  expect(limits.size).toBe(0);
});

test("a short limit, and accounts that need a person, are no return", () => {
  const limits: EndingLimits = new Map();
  const look = (minutes: number, state: string) => returnNotices(limits, noticed([null, state]), at(minutes));
  look(0, "cooling");
  expect(look(2, "ready")).toEqual([]);
  look(3, "exhausted");
  expect(look(20, "failed")).toEqual([]);
  expect(look(21, "ready")).toEqual([]);
});
