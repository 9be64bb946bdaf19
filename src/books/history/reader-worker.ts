/** The worker thread of `reader.ts`. */
import { Database } from "bun:sqlite";
import { sqliteCode } from "../../lib/sqlite";
import { type ReaderAnswer, type ReaderQuestion, readerTasks } from "./reader-tasks";

declare const self: Worker;

interface Files {
  identity: string;
  reading: Database;
  /** Adds up hours. */
  writing: Database;
}

let files: Files | undefined;
/** A question begins when the one before has its answer: they share a connection. Adding up has its own. */
let last: Promise<void> = Promise.resolve();
const answer = (message: ReaderAnswer) => self.postMessage(message);

self.onmessage = ({ data }: MessageEvent<ReaderQuestion | "close">) => {
  if (data === "close") {
    close();
    process.exit();
  }
  const run = () => work(data);
  if (data.task === "addUp") void run();
  else last = last.then(run);
};

async function work({ id, path, identity, task, input }: ReaderQuestion): Promise<void> {
  try {
    const { reading, writing } = open(path, identity);
    const found: unknown = await (readerTasks[task] as (database: Database, ...given: unknown[]) => unknown)(
      task === "addUp" ? writing : reading,
      ...input,
    );
    send(id, found);
  } catch (thrown) {
    const failure = thrown instanceof Error ? thrown.message : String(thrown);
    answer({ id, failure, code: sqliteCode(thrown) });
  }
}

/** Groups that are sent at once: about a millisecond of the thread that reads them. */
const groupsAtOnce = 200;

function send(id: number, found: unknown): void {
  if (typeof found !== "object" || found === null || !("groups" in found)) {
    answer({ id, value: JSON.stringify(found ?? null) });
    return;
  }
  const groups = found.groups as unknown[];
  for (let at = 0; at < groups.length; at += groupsAtOnce)
    answer({ id, more: JSON.stringify(groups.slice(at, at + groupsAtOnce)) });
  answer({ id, value: JSON.stringify({ ...found, groups: [] }) });
}

function open(path: string, identity: string): Files {
  if (files?.identity === identity) return files;
  close();
  const reading = new Database(path, { readonly: true, strict: true });
  const writing = new Database(path, { readwrite: true, create: false, strict: true });
  for (const pragma of ["busy_timeout = 1000", "synchronous = NORMAL", "trusted_schema = OFF"])
    for (const database of [reading, writing]) database.run(`PRAGMA ${pragma}`);
  files = { identity, reading, writing };
  return files;
}

function close(): void {
  files?.reading.close();
  files?.writing.close();
  files = undefined;
}
