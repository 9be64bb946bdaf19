/** Rows: efforts and budgets of thinking, each as what the model takes. */
import { expect, test } from "bun:test";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { budgetOf, effortOf } from "../../src/dialects/hub/reasoning";
import { ableModel } from "../support/facts";

const able = ableModel("m", "v");
const unable = { adaptiveThinking: false, thinkingBudget: undefined, efforts: [] };
const model = (supports: Partial<ModelFacts["supports"]>): ModelFacts => ({
  ...able,
  limits: {},
  supports: { ...able.supports, ...unable, ...supports },
});

const gpt = model({ efforts: ["none", "low", "medium", "high", "xhigh"] });
const small = model({ efforts: ["low", "medium"] });
const claude = model({ thinkingBudget: { min: 1024, max: 32000 } });

test.each([
  ["the word said, when the model lists it", gpt, { effort: "xhigh" }, "xhigh"],
  ["the nearest weaker word, when it does not", small, { effort: "max" }, "medium"],
  ["the weakest it lists, when all are stronger", small, { effort: "minimal" }, "low"],
  ["never none for a little", model({ efforts: ["none", "low"] }), { effort: "minimal" }, "low"],
  ["a word of the model's own making", model({ efforts: ["turbo"] }), { effort: "turbo" }, "turbo"],
  ["nothing for a word nobody knows", gpt, { effort: "turbo" }, undefined],
  ["nothing when nothing was said", gpt, {}, undefined],
  ["nothing for a model without such words", claude, { effort: "high" }, undefined],
  ["none when thinking was switched off", gpt, { disabled: true, effort: "high" }, "none"],
  ["the weakest when a model cannot switch it off", small, { disabled: true }, "low"],
  ["the word nearest to a budget", gpt, { budget: 4096 }, "low"],
  ["high for the largest budgets, never more", gpt, { budget: 31999 }, "high"],
  ["the word over the budget", gpt, { effort: "low", budget: 31999 }, "low"],
  ["nothing for thinking that is merely adaptive", gpt, { adaptive: true }, undefined],
])("effort is %s", (_, facts, reasoning, expected) => expect(effortOf(reasoning, facts)).toBe(expected));

test("no effort is sent for a request that asks for no reasoning", () =>
  expect(effortOf(undefined, gpt)).toBeUndefined());

test.each([
  ["the number said", claude, { budget: 5000 }, 20000, 5000],
  ["no less than the model's least", claude, { budget: 10 }, 20000, 1024],
  ["no more than the model's most", claude, { budget: 99999 }, undefined, 32000],
  ["below the tokens of the reply", claude, { budget: 32000 }, 32000, 31999],
  ["nothing when the reply leaves no room", claude, { budget: 5000 }, 1024, undefined],
  ["the number of the effort", claude, { effort: "low" }, 20000, 4000],
  ["the number over the effort", claude, { effort: "low", budget: 9000 }, 20000, 9000],
  ["a generous one for adaptive thinking", claude, { adaptive: true }, 64000, 16000],
  ["a generous one for a word nobody knows", claude, { effort: "turbo" }, 64000, 16000],
  ["the same for a word every object knows", claude, { effort: "constructor" }, 64000, 16000],
  ["nothing for no effort", claude, { effort: "none" }, 20000, undefined],
  ["nothing when thinking was switched off", claude, { disabled: true, budget: 5000 }, 20000, undefined],
  ["nothing when nothing was said", claude, {}, 20000, undefined],
  ["nothing for a model that counts none", gpt, { budget: 5000 }, 20000, undefined],
])("budget is %s", (_, facts, reasoning, room, expected) => expect(budgetOf(reasoning, facts, room)).toBe(expected));
