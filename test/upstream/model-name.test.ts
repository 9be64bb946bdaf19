import { describe, expect, test } from "bun:test";
import { findModel } from "../../src/upstream/model-name";

const models = [
  "claude-sonnet-4.5",
  "claude-sonnet-4",
  "claude-opus-4.6",
  "claude-opus-4.6-1m",
  "claude-haiku-4.5",
  "gpt-5-mini",
  "gpt-4o-2024-11-20",
  "gemini-3.1-pro-preview",
].map((id) => ({ id }));
const find = (name: string, aliases: Record<string, string> = {}) => findModel(name, models, aliases).id;

describe("spellings that mean a listed model", () => {
  test.each([
    ["claude-sonnet-4.5", "claude-sonnet-4.5"],
    ["Claude-Sonnet-4.5", "claude-sonnet-4.5"],
    ["claude-sonnet-4-5-20250929", "claude-sonnet-4.5"],
    ["claude-sonnet-4-5", "claude-sonnet-4.5"],
    ["claude-4.5-sonnet", "claude-sonnet-4.5"],
    ["claude-4-5-sonnet-latest", "claude-sonnet-4.5"],
    ["claude-sonnet-4-20250514", "claude-sonnet-4"],
    ["claude-4-sonnet", "claude-sonnet-4"],
    ["claude-opus-4-6-1m", "claude-opus-4.6-1m"],
    ["claude-haiku-4-5-20251001", "claude-haiku-4.5"],
    ["GPT-5-mini", "gpt-5-mini"],
  ])("%s is %s", (name, id) => expect(find(name)).toBe(id));

  test("an alias of the owner's, but never over a listed id", () => {
    expect(find("fast", { fast: "gpt-5-mini" })).toBe("gpt-5-mini");
    expect(find("gpt-5-mini", { "gpt-5-mini": "claude-opus-4.6" })).toBe("gpt-5-mini");
    expect(() => find("toString")).toThrow("There is no model");
  });
});

describe("no silent other model", () => {
  test("an unknown version is refused with the three nearest", () => {
    expect(() => find("claude-sonnet-4.7")).toThrow(/`claude-sonnet-4.5`/);
    expect(() => find("claude-sonnet-9")).toThrow(
      expect.objectContaining({ status: 404, details: { param: "model", code: "model_not_found" } }),
    );
    expect(() => find("gpt-5-mnii")).toThrow(/The nearest are `gpt-5-mini`, `/);
  });

  test("a bracketed suffix is refused, naming the id to use", () => {
    expect(() => find("claude-opus-4-6[1m]")).toThrow(/Use `claude-opus-4.6-1m`/);
    expect(() => find("claude-sonnet-4.5[1m]")).toThrow(/Use `claude-sonnet-4.5`/);
    expect(() => find("x[1m]")).toThrow(expect.objectContaining({ status: 400 }));
  });
});
