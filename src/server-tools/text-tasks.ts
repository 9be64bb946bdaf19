/** What the threads of `text-work.ts` can do. */
import { textOfPage } from "./page-text";
import { matchTools } from "./tool-match";

export const textTasks = { textOfPage, matchTools };
export type TextTasks = typeof textTasks;

/** The answer of a thread: what the task returned, or why it failed. */
export type TaskAnswer = { value: unknown } | { failure: string };
