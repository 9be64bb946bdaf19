/** A demo that was used before: a new one begins with two weeks of history, which take most of its start. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openHistory } from "../../src/books/history/history";
import { entry } from "./history-rows";

/** @returns The data folder, made at this path, whose demo has one exchange in its history; without keys and budgets if it has no config yet. */
export function usedDemo(folder: string): string {
  const own = join(folder, "demo");
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const history = openHistory(join(own, "admin.sqlite"), {
    retentionDays: () => 90,
    maxRows: () => 1e9,
    warn(sentence) {
      throw new Error(sentence);
    },
  });
  history.add(entry({ started_at_ms: Date.now() }));
  history.flush();
  history.close();
  const config = join(own, "config.json");
  if (!existsSync(config)) writeFileSync(config, "{}\n", { mode: 0o600 });
  return folder;
}
