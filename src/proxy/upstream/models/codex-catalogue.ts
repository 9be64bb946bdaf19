/**
 * The model list as Codex reads it from a provider's `model_catalog_url` (0.156 and later, with the feature
 * `api_key_model_discovery`). What is required, and what is used, was tried with `codex debug models` of 0.169: a list in
 * which one entry lacks a required member counts as empty, and the list replaces the one that Codex brings along.
 */

import { summaryOf } from "../../../clients/model-summary";
import type { JsonObject } from "../../../dialects/hub/conversation";
import type { Model } from "./model";
import { clientLimitsOf, type LimitConfig } from "./prompt-limit";

/** The name by which Codex asks for a model that reviews approvals. */
const reviewName = "codex-auto-review";

/** @param models Those that the client may use. */
export function codexCatalogue(models: readonly Model[], config: LimitConfig): JsonObject {
  const chats = models.filter(({ kind }) => kind === "chat");
  const listed = chats.map((model, at) => entryOf(model, at, config));
  const id = codexAliases(reviewName, chats)[reviewName];
  const reviewer = listed.find(({ slug }) => slug === id);
  const review = { ...reviewer, slug: reviewName, display_name: `Approval review by ${id}`, visibility: "hide" };
  return { models: reviewer ? [...listed, review] : listed };
}

/** The model that reviews approvals, as an alias: the cheapest small one. Empty for any other name, or if there is none. */
export function codexAliases(name: string, models: readonly Model[]): Record<string, string> {
  if (name !== reviewName) return {};
  const able = models.filter(
    ({ enabled, picked, dialects, light, price, supports }) =>
      enabled && picked && supports.tools && dialects.length > 0 && (light || !price.premium),
  );
  const [cheapest] = able.toSorted((one, other) => costOfTurn(one) - costOfTurn(other));
  return cheapest ? { [name]: cheapest.id } : {};
}

/** For comparison only. A model whose price is unknown comes last. */
const costOfTurn = ({ price: { premium, units, tokens } }: Model): number =>
  premium ? (tokens ? (tokens.input * 4 + tokens.output) / tokens.per : (units ?? Number.MAX_VALUE)) : 0;

function entryOf(model: Model, priority: number, config: LimitConfig): JsonObject {
  const { id, name, vendor, picked, price, supports } = model;
  const { context, prompt } = clientLimitsOf(model, config);
  const window = prompt ?? context;
  const thinks = supports.adaptiveThinking || supports.thinkingBudget !== undefined;
  const efforts = supports.efforts.length > 0 ? supports.efforts : thinks ? ["low", "medium", "high"] : [];
  // OpenAI's models were trained with its patches; others are better with their own ways to edit.
  const isOpenAi = vendor.includes("OpenAI");
  return {
    slug: id,
    display_name: name,
    description: summaryOf(price, prompt),
    default_reasoning_level: efforts.includes("medium") ? "medium" : efforts[0],
    supported_reasoning_levels: efforts.map((effort) => ({ effort, description: effortWords[effort] ?? "" })),
    shell_type: "unified_exec",
    visibility: picked ? "list" : "hide",
    supported_in_api: true,
    priority,
    base_instructions: instructions,
    support_verbosity: isOpenAi,
    ...(isOpenAi && { default_verbosity: "low", apply_patch_tool_type: "freeform" }),
    truncation_policy: { mode: "tokens", limit: toolOutputTokens },
    ...(window !== undefined && { context_window: window, max_context_window: window }),
    input_modalities: supports.vision ? ["text", "image"] : ["text"],
    supports_search_tool: true,
    experimental_supported_tools: [],
  };
}

/** Of a tool's output Codex keeps so many tokens; for all of its own models it does the same (0.169). */
const toolOutputTokens = 10_000;

const effortWords: Record<string, string> = {
  none: "Does not think before it answers",
  minimal: "Thinks as little as possible",
  low: "Answers soon, thinks little",
  medium: "For everyday work",
  high: "Thinks longer, for hard problems",
  xhigh: "Thinks very long",
  max: "Thinks as long as it can",
};

/** Required of each entry. Codex adds its own texts about the sandbox, approvals, skills and the environment. */
const instructions = `You are a coding agent in the Codex CLI. You and the person work in the same folder of the person's machine, and you go on until the task is done.

How to work
- Read before you write: look at the files that matter, at AGENTS.md files that apply to them, and at the state of the version control. Search with rg, and read only what you need. Run independent reads side by side.
- Keep to the conventions, libraries and style that the code has. Make the smallest change that solves the cause of the problem. Do not fix what nobody asked about; mention it instead.
- Edit files with apply_patch if it is offered. Do not read a file again only to see that an edit worked.
- The folder may hold changes of the person's. Never undo, overwrite or format away what you did not make, and run no command that destroys work, such as git reset --hard or git checkout of a file, unless you were asked to.
- Commit, push, or create branches only when you are asked to.
- For a task of several steps keep a plan with the plan tool, if it is offered, and update it as you go.
- Check your work: run the narrowest tests, type checks or builds that show it, then broader ones. If you cannot run them, say so.
- If something is unclear, choose the most plausible meaning and say what you assumed. Ask only when a wrong guess would be costly.

How to speak
- Before a group of commands say in one short sentence what you are about to do.
- At the end say what you changed and why, with paths of files and lines, what you verified and what is left. Be brief and plain, as to a colleague. Do not show whole files that the person can open.
- Say what you know and what you do not know. Never claim that something was run or tested if it was not.
- If you are asked for a review, list the problems first, the worst first, with file and line.`;
