/** A worker thread of `match-threads.ts`. */
import { matchTools, type ToolQuery } from "./tool-match";

declare const self: Worker;

/** What was found, or why the thread failed. */
export type MatchAnswer = { names: string[] | undefined } | { failure: string };

self.onmessage = async ({ data }: MessageEvent<ToolQuery>) => {
  let answer: MatchAnswer;
  try {
    answer = { names: await matchTools(data) };
  } catch (thrown) {
    answer = { failure: thrown instanceof Error ? thrown.name : "unknown" };
  }
  self.postMessage(answer);
};
