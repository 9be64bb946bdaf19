/** A worker thread of `text-work.ts`. */
import { type TaskAnswer, type TextTasks, textTasks } from "./text-tasks";

declare const self: Worker;

self.onmessage = async ({ data }: MessageEvent<{ task: keyof TextTasks; input: never }>) => {
  let answer: TaskAnswer;
  try {
    answer = { value: await textTasks[data.task](data.input) };
  } catch (thrown) {
    answer = { failure: thrown instanceof Error ? thrown.name : "unknown" };
  }
  self.postMessage(answer);
};
